"""The paged list of instances: filters, order, pages and their tokens."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stationmaster.simulator.api_refusals import ApiRefusal, invalid_request
from stationmaster.simulator.filters import matches, ordered

PAGE_LIMIT = 25
_STORED_COLUMNS = frozenset(
    (
        *("id", "label", "machine_id", "host_id", "image_uuid", "is_bid", "start_date", "end_date"),
        *("actual_status", "intended_status", "cur_state", "next_state"),
        *("gpu_name", "num_gpus", "verification", "geolocation"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    select_filters: Mapping[str, Any] = field(default_factory=dict)
    order_by: Sequence[Mapping[str, str]] = ()
    limit: int = PAGE_LIMIT
    after_token: str | None = None
    select_cols: Sequence[str] | None = None


def read_page_request(query: Mapping[str, str]) -> PageRequest:
    """The query parameters, each JSON-encoded."""
    try:
        limit = int(_decoded(query, "limit", PAGE_LIMIT))
        return PageRequest(
            select_filters=_decoded(query, "select_filters", {}),
            order_by=_decoded(query, "order_by", []),
            limit=5 if limit <= 0 else min(limit, PAGE_LIMIT),
            after_token=query.get("after_token", "").strip('"') or None,
            select_cols=_decoded(query, "select_cols", None),
        )
    except (ValueError, TypeError):
        raise invalid_request("a query parameter is not valid JSON") from None


def page(rows: Sequence[Mapping[str, Any]], request: PageRequest) -> dict[str, Any]:
    """One page of the matching rows; `next_token` is null on the last page."""
    unknown = set(request.select_filters) - _STORED_COLUMNS
    if unknown:
        raise invalid_request(f"cannot filter by {', '.join(sorted(unknown))}")
    found = [row for row in rows if matches(row, request.select_filters)]
    order = [[entry["col"], entry.get("dir", "asc")] for entry in request.order_by] or [["id", "asc"]]
    found = list(ordered(found, order))
    first = _position(found, request.after_token)
    shown = found[first : first + request.limit]
    last = first + len(shown)
    return {
        "success": True,
        "instances_found": len(shown),
        "total_instances": len(found),
        "label_counts": dict(Counter(row["label"] or "" for row in found)),
        "next_token": _token(last, shown[-1]["id"]) if shown and last < len(found) else None,
        "instances": [_columns(row, request.select_cols) for row in shown],
    }


def _decoded(query: Mapping[str, str], name: str, default: Any) -> Any:
    return json.loads(query[name]) if query.get(name) else default


def _token(position: int, last_id: int) -> str:
    return base64.urlsafe_b64encode(json.dumps({"v": 2, "position": position, "id": last_id}).encode()).decode()


def _position(found: Sequence[Mapping[str, Any]], token: str | None) -> int:
    """Start of the page: after the previous page's last row, so that removed rows do not skip others."""
    if token is None:
        return 0
    try:
        content = json.loads(base64.urlsafe_b64decode(token))
        position, last_id = int(content["position"]), int(content["id"])
    except (ValueError, KeyError, TypeError):
        raise ApiRefusal(400, "invalid_token", "after_token is not valid") from None
    for index, row in enumerate(found):
        if row["id"] == last_id:
            return index + 1
    return min(position, sum(1 for row in found if row["id"] < last_id))


def _columns(row: Mapping[str, Any], columns: Sequence[str] | None) -> dict[str, Any]:
    if not columns or "*" in columns:
        return dict(row)
    return {name: row.get(name) for name in columns}
