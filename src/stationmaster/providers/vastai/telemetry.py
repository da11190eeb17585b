"""Reads all instances of an account for monitoring: an unreadable row does not hide the others."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.client import read_instance_pages
from stationmaster.providers.vastai.wire import InstanceRow, Maybe


class TelemetryRow(InstanceRow):
    """Memory of the container, both fields in the same unit, which the documentation states differently."""

    mem_usage: Maybe[float] = None
    mem_limit: Maybe[float] = None

    @property
    def memory_percent(self) -> float | None:
        if self.mem_usage is None or not self.mem_limit or self.mem_limit < 0:
            return None
        return max(0.0, min(100.0, 100.0 * self.mem_usage / self.mem_limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """`unreadable` has one message for each row that was skipped."""

    rows: tuple[TelemetryRow, ...]
    unreadable: tuple[str, ...]


async def read_telemetry(calls: Calls) -> Telemetry:
    """Read every page of the list, without checking that it is complete. Raises ProviderError if it cannot be read."""
    rows: dict[int, TelemetryRow] = {}
    unreadable: list[str] = []
    pages = await read_instance_pages(calls, at_once=True)  # so that a monitoring cycle stays short
    for document in (one for page in pages for one in page.instances):
        try:
            row = TelemetryRow.model_validate(document)
            rows[row.id] = row
        except ValidationError as problem:
            first = problem.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "it"
            unreadable.append(f"instance {document.get('id', '?')} skipped: {place}: {first['msg']}")
    return Telemetry(rows=tuple(rows.values()), unreadable=tuple(unreadable))
