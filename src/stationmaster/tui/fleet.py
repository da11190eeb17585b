"""What the fleet screen shows, wherever it comes from: one row per training or machine, and all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stationmaster.money import ZERO, MicroDollars, cost
from stationmaster.tui.lines import Line

ALL = "All"
"""The group with every row."""

_TRAJECTORY_HOURS = (1, 6, 24)


class Tone(StrEnum):
    """How a row is doing. Each has a mark of its own, because colour may be missing or unseen."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """One training or machine; None where unknown. `is_old`: the values are those of `seen_at`, not of now."""

    id: str
    status: str
    icon: str
    tone: Tone
    name: str = ""
    gpu: str = ""
    epoch: float | None = None
    total_epochs: int | None = None
    progress: float | None = None  # percent
    gpu_percent: float | None = None
    memory_percent: float | None = None
    loss: float | None = None
    cost_per_hour: MicroDollars | None = ZERO  # None: nothing bills
    total_cost: MicroDollars = ZERO
    eta_seconds: float | None = None
    seen_at: float = 0.0
    is_old: bool = False
    note: str = ""  # what a person should know of it
    groups: tuple[str, ...] = ()
    is_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """All rows together. `trajectory` is their cost after each number of hours if they all keep running."""

    running: int
    total: int
    errors: int
    total_cost: MicroDollars
    cost_per_hour: MicroDollars
    average_cost_per_hour: MicroDollars
    gpu_percent: float | None
    memory_percent: float | None
    trajectory: tuple[tuple[int, MicroDollars], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that a person wants to hear of at once."""

    sentence: str
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A line that a training printed, as it is shown, and whose it is."""

    id: str
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """One look at everything. `problem`: why the newest values could not be had; the rows are the last known ones."""

    at: float
    rows: tuple[FleetRow, ...]
    summary: FleetSummary
    logs: tuple[LogEntry, ...] = ()
    groups: tuple[str, ...] = (ALL,)
    problem: str | None = None
    notices: tuple[Notice, ...] = ()


def trajectory(total: MicroDollars, per_hour: MicroDollars) -> tuple[tuple[int, MicroDollars], ...]:
    return tuple((hours, MicroDollars(total + cost(per_hour, hours * 3600))) for hours in _TRAJECTORY_HOURS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Which rows are shown, and in which order; without a sort key in the order of the source."""

    group: str = ALL
    text: str = ""
    sort_by: str | None = None
    is_reversed: bool = False


def arranged(
    rows: Iterable[FleetRow], how: Arrangement, sort_key: Callable[[FleetRow], float | str | None] | None
) -> list[FleetRow]:
    """The rows of the group that contain the text, sorted; unknown values always come last."""
    words = how.text.casefold().split()
    found = [row for row in rows if _is_in(row, how.group) and _has(row, words)]
    if sort_key is None:
        return found
    known = [(key, row) for row in found if (key := sort_key(row)) is not None]
    known.sort(key=lambda pair: pair[0], reverse=how.is_reversed)
    return [row for _, row in known] + [row for row in found if sort_key(row) is None]


def next_of(names: Sequence[str | None], current: str | None) -> str | None:
    """The name behind the current one, or the first.

    >>> next_of(["All", "blue"], "blue")
    'All'
    """
    place = names.index(current) if current in names else -1
    return names[(place + 1) % len(names)]


def _is_in(row: FleetRow, group: str) -> bool:
    return group == ALL or group in row.groups


def _has(row: FleetRow, words: Sequence[str]) -> bool:
    if not words:
        return True
    text = f"{row.id} {row.name} {row.gpu} {row.status} {row.note}".casefold()
    return all(word in text for word in words)
