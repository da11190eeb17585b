"""What the training was doing at a time: loading, training, sampling or saving."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stationmaster.series.table import Table

_PAUSES = {"sampling_start": "sampling_end", "save_start": "save_end"}
_ENDS_NO_PAUSE = ("oom_error", "training_end", "batch_size_adjustment")
_SETTLING_SECONDS = 10.0  # after a pause memory needs a moment to fall, and a sample may be one interval old


class RunPhase(StrEnum):
    LOADING = "loading"
    TRAINING = "training"
    SAMPLING = "sampling"
    SAVING = "saving"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    at: float
    kind: str
    details: Mapping[str, Any]

    @property
    def step(self) -> int | None:
        return self.whole("step")

    @property
    def is_of_kernel(self) -> bool:
        """Whether the kernel's own counter proves it; its time is then that of the training's end."""
        return self.details.get("source") == "kernel"

    def whole(self, name: str) -> int | None:
        """Return a whole number of the event's details."""
        value = self.details.get(name)
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A time of sampling or saving; one without an end lasted until the run ended."""

    phase: RunPhase
    start: float
    end: float
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """The phases of a run. Without a first step nothing is known about them."""

    first_step_at: float | None
    ended_at: float
    pauses: tuple[Pause, ...]
    reloads: tuple[tuple[float, float], ...]

    def at(self, time: float) -> RunPhase | None:
        """Return the phase at a time; None if the run's phases are unknown."""
        if self.first_step_at is None:
            return None
        if time < self.first_step_at:
            return self._pause_at(time) or RunPhase.LOADING
        if time > self.ended_at:
            return RunPhase.ENDED
        if any(start < time < end for start, end in self.reloads):
            return RunPhase.LOADING
        return self._pause_at(time) or RunPhase.TRAINING

    def is_settled_training(self, time: float) -> bool:
        """Return whether the run was training, and not just back from a pause."""
        if self.at(time) is not RunPhase.TRAINING:
            return False
        place = bisect_right(self.pauses, time, key=lambda pause: pause.end) - 1
        return place < 0 or time >= self.pauses[place].end + _SETTLING_SECONDS

    def seconds_in(self, phase: RunPhase) -> float:
        """Return how long the run was sampling or saving."""
        return sum(max(0.0, pause.end - pause.start) for pause in self.pauses if pause.phase is phase)

    def _pause_at(self, time: float) -> RunPhase | None:
        place = bisect_right(self.pauses, time, key=lambda pause: pause.start) - 1
        # Pauses follow one another; the last one that began may have ended, and one before it may still last.
        for pause in reversed(self.pauses[max(0, place - 1) : place + 1]):
            if pause.start <= time <= pause.end:
                return pause.phase
        return None


def events_of(table: Table | None) -> list[RunEvent]:
    """Return the events by time; details that are not JSON are empty."""
    if table is None:
        return []
    rows = table.tuples("timestamp", "event_type", "details")
    return sorted(
        (RunEvent(at=at, kind=kind, details=_details(details)) for at, kind, details in rows),
        key=lambda event: event.at,
    )


def phases_of(events: Sequence[RunEvent], steps: Table | None, *, last_row_at: float) -> Phases:
    """Return the phases that events and steps show."""
    rows = sorted(steps.tuples("timestamp", "step")) if steps is not None else []
    times = [at for at, _ in rows]
    starts = [event.at for event in events if event.kind == "training_start"]
    ends = [event.at for event in events if event.kind == "training_end"]
    ended_at = ends[-1] if ends and (not starts or ends[-1] >= starts[-1]) else last_row_at
    return Phases(
        first_step_at=starts[0] if starts else _before_first_row(steps),
        ended_at=ended_at,
        pauses=tuple(_pauses(events, rows, ended_at)),
        reloads=tuple(_reloads(starts[1:], events, times)),
    )


def _before_first_row(steps: Table | None) -> float | None:
    """Return when the first recorded step began, as far as its row shows."""
    if steps is None or not len(steps):
        return None
    rows = list(steps.tuples("timestamp", "step", "step_time_seconds"))
    at, step, seconds = min(rows)
    if seconds is None or not math.isfinite(seconds) or step > 1000:
        return float(at)
    return float(at - seconds * max(1, step))


def _pauses(events: Sequence[RunEvent], steps: Sequence[tuple[float, int]], ended_at: float) -> list[Pause]:
    found: list[Pause] = []
    for place, event in enumerate(events):
        if event.kind not in _PAUSES:
            continue
        later = events[place + 1 :]
        ending = next((other.at for other in later if other.kind == _PAUSES[event.kind]), None)
        others = (other.at for other in later if other.kind not in (*_ENDS_NO_PAUSE, _PAUSES[event.kind]))
        moved_on = min(next(others, math.inf), _next_step(steps, event))
        # Where its end is missing, whatever came next shows that the pause was over.
        end = ending if ending is not None and ending <= moved_on else moved_on
        phase = RunPhase.SAMPLING if event.kind == "sampling_start" else RunPhase.SAVING
        found.append(Pause(phase=phase, start=event.at, end=min(end, max(ended_at, event.at)), step=event.step))
    return found


def _next_step(steps: Sequence[tuple[float, int]], event: RunEvent) -> float:
    """Return when a step after an event was done; the row of the event's own step may be written after it."""
    first = bisect_right(steps, event.at, key=lambda row: row[0])
    return next((at for at, step in steps[first:] if event.step is None or step > event.step), math.inf)


def _reloads(
    starts: Sequence[float], events: Sequence[RunEvent], step_times: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the times between an interruption and the training's next start."""
    busy = sorted([*step_times, *(event.at for event in events if event.kind != "training_start")])
    found = []
    for start in starts:
        place = bisect_right(busy, start) - 1
        while place >= 0 and busy[place] >= start:
            place -= 1
        if place >= 0:
            found.append((busy[place], start))
    return found


def _details(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
