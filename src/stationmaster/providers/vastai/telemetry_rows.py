"""Instances as monitoring reads them: an unreadable row does not hide the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from stationmaster.providers.vastai.bounds import Maybe, Number
from stationmaster.providers.vastai.wire import InstanceRow


class TelemetryRow(InstanceRow):
    """Memory of the container, both fields in the same unit, which the documentation states differently."""

    mem_usage: Maybe[Number] = None
    mem_limit: Maybe[Number] = None

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


def parse_telemetry(documents: Iterable[Any]) -> Telemetry:
    """The instances that can be read; of two with the same id the later one."""
    rows: dict[int, TelemetryRow] = {}
    unreadable: list[str] = []
    for document in documents:
        try:
            row = TelemetryRow.model_validate(document)
            rows[row.id] = row
        except ValidationError as problem:
            first = problem.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "it"
            stated = document.get("id") if isinstance(document, dict) else None
            name = str(stated)[:40] if isinstance(stated, str | int | float) else "?"
            unreadable.append(f"instance {name} skipped: {place}: {first['msg']}")
    return Telemetry(rows=tuple(rows.values()), unreadable=tuple(unreadable))
