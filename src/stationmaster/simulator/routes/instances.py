"""Routes to read and manage instances: state, label, bid, logs, destroy."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from stationmaster.simulator import api_refusals, renting
from stationmaster.simulator.accounts import Identity
from stationmaster.simulator.cloud import Cloud
from stationmaster.simulator.faults import FaultKind
from stationmaster.simulator.instances import Instance
from stationmaster.simulator.json_rows import instance_row
from stationmaster.simulator.listing import page, read_page_request
from stationmaster.simulator.routes.caller import Caller, CloudDep, Document

DEPRECATED = {
    "success": False,
    "error": "deprecated_endpoint",
    "msg": "/api/v0/instances/ is deprecated. Use /api/v1/instances/ instead.",
}

router = APIRouter()


@router.get("/api/v1/instances")
async def show_instances(cloud: CloudDep, caller: Caller, request: Request) -> Response:
    wanted = read_page_request(request.query_params)
    if fault := cloud.take_fault(FaultKind.DEPRECATED_LIST, "list"):
        return JSONResponse(DEPRECATED, status_code=fault.status or 200)
    now = cloud.now()
    shown = [instance for instance in cloud.instances_of(caller) if now >= instance.hidden_until]
    if cloud.take_fault(FaultKind.EMPTY_LIST, "list"):
        shown = []
    answer = page(list(await asyncio.gather(*(_row(cloud, instance) for instance in shown))), wanted)
    if answer["instances"] and cloud.take_fault(FaultKind.SHORT_PAGE, "list"):
        answer |= {"instances": answer["instances"][:-1], "next_token": None}
        answer["instances_found"] = len(answer["instances"])
    return JSONResponse(answer)


@router.get("/api/v0/instances")
async def show_instances_by_the_old_path(caller: Caller) -> Response:
    return JSONResponse(DEPRECATED, status_code=410)


@router.get("/api/v0/instances/filters")
async def show_filters(cloud: CloudDep, caller: Caller) -> dict[str, Any]:
    distinct = {
        (instance.actual, "verified" if instance.offer.verified else "unverified", instance.offer.gpu.name)
        for instance in cloud.instances_of(caller)
    }
    names = ("actual_status", "verification", "gpu_name")
    return {"filters": [dict(zip(names, values, strict=True)) for values in sorted(distinct, key=str)]}


@router.get("/api/v0/instances/{instance_id}")
async def show_instance(cloud: CloudDep, caller: Caller, instance_id: int) -> dict[str, Any]:
    """One object under a plural key; null if it is gone, never existed, or belongs to another account."""
    try:
        instance = cloud.instance(caller, instance_id)
    except api_refusals.ApiRefusal as refused:
        if refused.status == 404:
            return {"instances": None}
        raise
    row = await _row(cloud, instance)
    row.pop("volume_info")
    return {"instances": row}


@router.put("/api/v0/instances/{instance_id}")
async def manage(cloud: CloudDep, caller: Caller, instance_id: int, document: Document) -> dict[str, Any]:
    cloud.instance(caller, instance_id)
    if "label" in document:
        renting.set_label(cloud, caller, instance_id, str(document["label"]))
    if "state" in document:
        return await _set_state(cloud, caller, instance_id, document["state"])
    return {"success": True}


@router.put("/api/v0/instances")
async def manage_many(cloud: CloudDep, caller: Caller, document: Document) -> dict[str, Any]:
    answers = [
        await _set_state(cloud, caller, int(instance_id), document.get("state"))
        for instance_id in document.get("ids") or []
    ]
    return next((answer for answer in answers if not answer["success"]), {"success": True})


@router.delete("/api/v0/instances/{instance_id}")
async def destroy(cloud: CloudDep, caller: Caller, instance_id: int) -> dict[str, Any]:
    await renting.destroy(cloud, caller, instance_id)
    return {"success": True}


@router.delete("/api/v0/instances")
async def destroy_many(cloud: CloudDep, caller: Caller, document: Document) -> dict[str, Any]:
    for instance_id in document.get("instance_ids") or []:
        await renting.destroy(cloud, caller, int(instance_id))
    return {"success": True}


@router.put("/api/v0/instances/{verb}/{instance_id}")
async def act(
    cloud: CloudDep, caller: Caller, request: Request, verb: str, instance_id: int, document: Document
) -> dict[str, Any]:
    match verb:
        case "reboot" | "recycle":
            await renting.reboot(cloud, caller, instance_id, fresh=verb == "recycle")
        case "bid_price":
            await renting.set_bid(cloud, caller, instance_id, document.get("price"))
        case "request_logs":
            cloud.instance(caller, instance_id)
            return await _request_logs(cloud, request, instance_id, document)
        case _:
            raise api_refusals.ApiRefusal(404, "not_found", f"there is no {verb} here")
    return {"success": True}


@router.post("/api/v0/contracts/fetch")
async def fetch_contracts(cloud: CloudDep, caller: Caller, document: Document) -> dict[str, Any]:
    """Undocumented; clients use it to find instances by label."""
    label, ids = document.get("label"), document.get("contract_ids")
    found = [
        instance
        for instance in cloud.instances_of(caller)
        if label in (None, instance.order.label) and (ids is None or instance.id in ids)
    ]
    return {"contracts": [await _row(cloud, instance) for instance in found]}


@router.get("/instance_logs/{name}")
async def read_log(cloud: CloudDep, request: Request, name: str) -> Response:
    """A log, without authentication as in the real service; refused until it is ready."""
    ready_at, text = request.app.state.results.get(name, (float("inf"), ""))
    if cloud.now() < ready_at:
        return PlainTextResponse("AccessDenied", status_code=403)
    return PlainTextResponse(text)


async def _row(cloud: Cloud, instance: Instance) -> dict[str, Any]:
    telemetry = await cloud.telemetry(instance)
    return instance_row(cloud.records.instances[instance.id], now=cloud.now(), telemetry=telemetry)


async def _set_state(cloud: Cloud, caller: Identity, instance_id: int, state: Any) -> dict[str, Any]:
    cloud.instance(caller, instance_id)
    if state == "running":
        queued = renting.start(cloud, caller, instance_id)
        # The HTTP status of a queued start is not confirmed; the body is.
        return {"success": False, "msg": queued} if queued else {"success": True}
    if state == "stopped":
        await renting.stop(cloud, instance_id, message="")
        return {"success": True}
    raise api_refusals.invalid_args(f"state {state!r} is neither running nor stopped")


async def _request_logs(cloud: Cloud, request: Request, instance_id: int, document: dict[str, Any]) -> dict[str, Any]:
    text = "" if str(document.get("daemon_logs")) == "true" else await cloud.machines.log(instance_id)
    lines = text.splitlines(keepends=True)
    if wanted := document.get("filter"):
        lines = [line for line in lines if str(wanted) in line]
    if tail := document.get("tail"):
        lines = list(deque(lines, maxlen=int(tail)))
    name = f"{cloud.secret()}.log"
    request.app.state.results[name] = (cloud.now() + cloud.pace.log_seconds, "".join(lines))
    return {"success": True, "result_url": f"{request.base_url}instance_logs/{name}", "msg": "fetch result_url"}
