"""Routes to search offers and rent one."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter

from stationmaster.simulator import api_refusals
from stationmaster.simulator.cloud import Cloud
from stationmaster.simulator.filters import matches, ordered
from stationmaster.simulator.instances import Instance
from stationmaster.simulator.json_rows import offer_row
from stationmaster.simulator.market import GPUS
from stationmaster.simulator.renting import read_create_request, rent
from stationmaster.simulator.routes.caller import Caller, CloudDep, Document

SEARCH_LIMIT = 64
"""Maximum offers in one answer, even with a higher `limit`. (Reported by third parties.)"""
_SETTINGS = frozenset(
    (
        "order",
        "type",
        "limit",
        "allocated_storage",
        "disable_bundling",
        "extra_ids",
        "target_reliability",
        "template_id",
    )
)

router = APIRouter()


@router.post("/api/v0/bundles")
async def search(cloud: CloudDep, document: Document) -> dict[str, Any]:
    return {"offers": _search(cloud, document)}


@router.get("/api/v0/bundles")
async def search_by_query(cloud: CloudDep, q: str = "{}") -> dict[str, Any]:
    try:
        document = json.loads(q)
    except ValueError:
        raise api_refusals.invalid_request("Invalid json body") from None
    return {"offers": _search(cloud, document)}


@router.put("/api/v0/search/asks")
async def search_asks(cloud: CloudDep, document: Document) -> dict[str, Any]:
    return {"offers": _search(cloud, document.get("q") or {})}


@router.get("/api/v0/gpu_names/unique")
async def gpu_names() -> dict[str, list[str]]:
    return {"gpu_names": sorted(gpu.name for gpu in GPUS)}


@router.put("/api/v0/asks/{ask_id}")
async def create(cloud: CloudDep, caller: Caller, ask_id: int, document: Document) -> dict[str, Any]:
    return _created(rent(cloud, caller, ask_id, read_create_request(document)))


@router.post("/api/v0/asks/bulk")
async def create_many(cloud: CloudDep, caller: Caller, document: Document) -> dict[str, Any]:
    """Undocumented; the client sends up to 64 ids at a time."""
    request = read_create_request(document)
    created: list[dict[str, Any]] = []
    for ask_id in document.get("ids") or []:
        try:
            created.append(_created(rent(cloud, caller, int(ask_id), request)))
        except api_refusals.ApiRefusal as refused:
            created.append(refused.body)
    return {"success": any(entry["success"] for entry in created), "results": created}


def _search(cloud: Cloud, document: dict[str, Any]) -> list[dict[str, Any]]:
    conditions = {name: value for name, value in document.items() if name not in _SETTINGS}
    if not all(isinstance(condition, dict) for condition in conditions.values()):
        raise api_refusals.invalid_request("every filter is an object of operators")
    if "id" in conditions:
        # As reported: a search by `id` finds nothing, one by `ask_contract_id` works.
        return []
    is_bid = document.get("type") == "bid"
    storage_gb = float(document.get("allocated_storage") or 8.0)
    now = cloud.now()
    rows = [offer_row(offer, storage_gb=storage_gb, now=now, is_bid=is_bid) for offer in cloud.offers()]
    found = [row for row in rows if matches(row, conditions)]
    limit = min(int(document.get("limit") or SEARCH_LIMIT), SEARCH_LIMIT)
    return [dict(row) for row in ordered(found, document.get("order") or [["score", "desc"]])[:limit]]


def _created(instance: Instance) -> dict[str, Any]:
    return {"success": True, "new_contract": instance.id, "instance_api_key": instance.api_key}
