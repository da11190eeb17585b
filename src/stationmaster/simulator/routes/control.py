"""The simulator's own routes, under /simulator: clock, faults, accounts, and the real state."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request

from stationmaster.money import from_dollars
from stationmaster.simulator import running
from stationmaster.simulator.billing import charge_until, gpu_seconds
from stationmaster.simulator.cloud import Cloud
from stationmaster.simulator.faults import parse_faults
from stationmaster.simulator.instances import Instance
from stationmaster.simulator.json_rows import dollars
from stationmaster.simulator.routes.caller import CloudDep, Document

router = APIRouter(prefix="/simulator")


@router.get("/state")
async def show_state(cloud: CloudDep) -> dict[str, Any]:
    """Every instance ever created, in its real state, regardless of faults in the API."""
    return {
        "now": cloud.now(),
        "accounts": [
            {"id": account.id, "name": account.name, "credit": dollars(cloud.credit(account.id))}
            for account in cloud.records.accounts.values()
        ],
        "instances": [await _truth(cloud, instance) for instance in list(cloud.records.instances.values())],
    }


@router.get("/faults")
async def show_faults(cloud: CloudDep) -> dict[str, Any]:
    """The armed faults, and those that occurred, with their targets."""
    return {
        "armed": [asdict(fault) for fault in cloud.faults.armed],
        "struck": [asdict(strike) for strike in cloud.faults.strikes],
    }


@router.post("/faults")
async def arm_faults(cloud: CloudDep, request: Request) -> dict[str, Any]:
    """Arm one fault, a list of them, or a document with `faults` and `storm`."""
    faults = parse_faults(await request.json())
    for fault in faults:
        cloud.faults.arm(fault, now=cloud.now())
    await running.tick(cloud)
    return {"armed": len(faults)}


@router.delete("/faults")
async def disarm_faults(cloud: CloudDep) -> dict[str, Any]:
    cloud.faults.disarm()
    return {"armed": 0}


@router.post("/clock")
async def set_clock(cloud: CloudDep, document: Document) -> dict[str, Any]:
    """`{"advance_seconds": 3600}` advances the clock; `{"speed": 60}` makes it run faster."""
    if "speed" in document:
        cloud.clock.set_speed(float(document["speed"]))
    cloud.clock.advance(float(document.get("advance_seconds", 0)))
    await running.tick(cloud)
    return {"now": cloud.now(), "speed": cloud.clock.speed}


@router.post("/accounts")
async def open_account(cloud: CloudDep, document: Document) -> dict[str, Any]:
    """`{"name", "api_key", "credit"}`: create an account, or add credit to the one with this key."""
    paid_in = from_dollars(document.get("credit", 0))
    known = {account.api_key: account for account in cloud.records.accounts.values()}.get(str(document["api_key"]))
    if known is not None:
        account = known.with_paid_in(from_dollars(dollars(known.paid_in) + dollars(paid_in)))
        cloud.records.put_account(account)
    else:
        account = cloud.open_account(str(document.get("name", "customer")), str(document["api_key"]), paid_in)
    return {"id": account.id, "credit": dollars(cloud.credit(account.id))}


async def _truth(cloud: Cloud, instance: Instance) -> dict[str, Any]:
    charge = charge_until(instance, cloud.now())
    return {
        "id": instance.id,
        "label": instance.order.label,
        "machine_id": instance.offer.machine_id,
        "actual_status": instance.actual,
        "intended_status": instance.wanted,
        "exists": instance.exists,
        "created_at": instance.created_at,
        "destroyed_at": instance.destroyed_at,
        "processes": await cloud.machines.processes(instance.id) if instance.exists else [],
        "gpu_seconds": gpu_seconds(instance, cloud.now()),
        "cost": {name: dollars(getattr(charge, name)) for name in ("gpu", "disk", "downloads", "uploads", "total")},
    }
