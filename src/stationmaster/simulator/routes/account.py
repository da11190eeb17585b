"""Routes for the account: its credit, and the cost of its instances."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request

from stationmaster.simulator import api_refusals
from stationmaster.simulator.billing import charges_by_day
from stationmaster.simulator.filters import matches
from stationmaster.simulator.json_rows import charge_row, dollars, user_row
from stationmaster.simulator.routes.caller import Caller, CloudDep

CHARGES_LIMIT = 500

router = APIRouter()


@router.get("/api/v0/users/current")
async def show_user(cloud: CloudDep, caller: Caller) -> dict[str, Any]:
    account = cloud.account(caller)
    return user_row(account, credit=cloud.credit(account.id))


@router.get("/api/v0/charges")
async def show_charges(cloud: CloudDep, caller: Caller, request: Request) -> dict[str, Any]:
    account = cloud.account(caller)
    filters = _filters(request, "day")
    day = filters.pop("day")
    now = cloud.now()
    rows = [
        charge_row(charge)
        for instance in cloud.records.instances.values()
        if instance.account_id == account.id
        for charge in charges_by_day(instance, now)
        # A day is included if any part of it is in the span.
        if charge.end >= float(day["gte"]) and charge.start <= float(day["lte"])
    ]
    rows = [row for row in rows if matches(row, filters)]
    rows.sort(key=lambda row: row["start"], reverse=request.query_params.get("latest_first") == "true")
    return _envelope(rows, request)


@router.get("/api/v1/invoices")
async def show_invoices(cloud: CloudDep, caller: Caller, request: Request) -> dict[str, Any]:
    account = cloud.account(caller)
    _filters(request, "when")
    paid = {
        "amount": dollars(account.paid_in),
        "type": "payment",
        "service": "stripe_payments",
        "description": "credit",
    }
    return _envelope([paid], request)


def _filters(request: Request, date_column: str) -> dict[str, Any]:
    try:
        filters: dict[str, Any] = json.loads(request.query_params.get("select_filters") or "{}")
    except ValueError:
        raise api_refusals.invalid_request("select_filters is not valid JSON") from None
    dates = filters.get(date_column) or {}
    if "gte" not in dates or "lte" not in dates:
        raise api_refusals.invalid_args(f"select_filters needs {date_column} with gte and lte")
    return filters


def _envelope(rows: list[dict[str, Any]], request: Request) -> dict[str, Any]:
    limit = max(1, min(int(request.query_params.get("limit") or 100), CHARGES_LIMIT))
    token = request.query_params.get("after_token", "").strip('"')
    first = int(token) if token.isdigit() else 0
    shown = rows[first : first + limit]
    following = str(first + limit) if first + limit < len(rows) else None
    return {"success": True, "count": len(shown), "total": len(rows), "next_token": following, "results": shown}
