"""All instances of an account as a watcher wants them: one row that cannot be read does not hide the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.exchange import Request
from stationmaster.providers.vastai.wire import InstancePage, InstanceRow, Maybe, read

_PAGE = 25


class TelemetryRow(InstanceRow):
    """Memory of the container; both in the same unit, whichever that is. (The documentation disagrees with itself.)"""

    mem_usage: Maybe[float] = None
    mem_limit: Maybe[float] = None

    @property
    def memory_percent(self) -> float | None:
        if self.mem_usage is None or not self.mem_limit or self.mem_limit < 0:
            return None
        return max(0.0, min(100.0, 100.0 * self.mem_usage / self.mem_limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """`unreadable` says in words which entries were left out, and why."""

    rows: tuple[TelemetryRow, ...]
    unreadable: tuple[str, ...]


async def read_telemetry(calls: Calls) -> Telemetry:
    """Every page of the list, without judging whether it is complete. Raises a ProviderError when there is none."""
    rows: dict[int, TelemetryRow] = {}
    unreadable: list[str] = []
    for document in await _documents(calls):
        try:
            row = TelemetryRow.model_validate(document)
            rows[row.id] = row
        except ValidationError as problem:
            first = problem.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "it"
            unreadable.append(f"instance {document.get('id', '?')} skipped: {place}: {first['msg']}")
    return Telemetry(rows=tuple(rows.values()), unreadable=tuple(unreadable))


async def _documents(calls: Calls) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = []
    tokens: set[str] = set()
    query = {"limit": str(_PAGE), "order_by": '[{"col": "id", "dir": "asc"}]'}
    while True:
        request = Request(
            endpoint="list",
            method="GET",
            path="/api/v1/instances/",
            doing="list its machines",
            query=query,
            continues=bool(tokens),  # pages follow each other at once, so that a cycle stays short
        )
        page = read(InstancePage, (await calls.ask(request)).document(), what="a list of machines")
        documents += page.instances
        if page.next_token is None or page.next_token in tokens:
            return documents
        tokens.add(page.next_token)
        query = {**query, "after_token": page.next_token}
