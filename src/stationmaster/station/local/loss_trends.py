"""The loss of many jobs as short trends, in which no spike is lost; only what is new is read again.

Each trend is kept in at most 30 parts of equal width in steps, with the lowest and the highest loss of each. When a
training grows beyond them, neighbouring parts become one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from stationmaster.model import Job
from stationmaster.store.readings import LossQuestion, LossRange
from stationmaster.store.store import Store

_PARTS = 30
_AT_ONCE = 500  # databases limit the number of values in a query
_MOST_NEW = 200  # jobs whose trend is read from its beginning in one call; the others follow with the next calls
_MOST_KEPT = 10_000


@dataclass(slots=True)
class _Trend:
    attempt: int
    width: int = 1
    seq: int = 0  # of the last reading in it
    seen: tuple[int | None, float | None] | None = None  # the job's progress when it was read
    parts: dict[int, tuple[float, float]] = field(default_factory=dict)

    def widen(self, step: int) -> None:
        """Make the parts wide enough for this step."""
        while step // self.width >= _PARTS:
            self.width *= 2
            halves, self.parts = self.parts, {}
            for part, (low, high) in halves.items():
                self.add(part // 2, low, high)

    def add(self, part: int, low: float, high: float) -> None:
        known = self.parts.get(part, (low, high))
        self.parts[part] = (min(known[0], low), max(known[1], high))

    def values(self) -> tuple[float, ...]:
        """Both extremes of each part, the one that is nearer to the value before it first."""
        found: list[float] = []
        for part in sorted(self.parts):
            low, high = self.parts[part]
            is_upwards = bool(found) and abs(found[-1] - low) < abs(found[-1] - high)
            found += [low] if low == high else [low, high] if is_upwards else [high, low]
        return tuple(float(f"{value:.4g}") for value in found)  # as exact as a small picture can be


class LossTrends:
    """Safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._trends: dict[str, _Trend] = {}

    def of(self, jobs: Sequence[Job]) -> dict[str, tuple[float, ...]]:
        """The trends by job id, of those jobs that have one."""
        with self._lock:
            self._read_what_is_new([job for job in jobs if job.progress.step is not None])
            return {job.id: trend.values() for job in jobs if (trend := self._trends.get(job.id)) and trend.parts}

    def _read_what_is_new(self, jobs: Sequence[Job]) -> None:
        changed: list[Job] = []
        fresh = 0
        for job in jobs:
            trend = self._trends.get(job.id)
            if trend is None or trend.attempt != job.attempt:
                fresh += 1
                if fresh > _MOST_NEW:
                    continue
                trend = self._trends[job.id] = _Trend(job.attempt)
            if trend.seen != _seen(job):
                changed.append(job)
        for first in range(0, len(changed), _AT_ONCE):
            self._read(changed[first : first + _AT_ONCE])
        if len(self._trends) > _MOST_KEPT:
            shown = {job.id for job in jobs}
            self._trends = {job_id: trend for job_id, trend in self._trends.items() if job_id in shown}

    def _read(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._trends[job.id].widen(job.progress.step or 0)
        asked = {job.id: _question(job, self._trends[job.id]) for job in jobs}
        for found in self._store.readings.loss_ranges(list(asked.values())):
            self._add(found, width=asked[found.job_id].width)
        for job in jobs:
            self._trends[job.id].seen = _seen(job)

    def _add(self, found: LossRange, *, width: int) -> None:
        trend, step = self._trends[found.job_id], found.part * width
        trend.widen(step)  # readings may be ahead of the progress that was read before them
        trend.add(step // trend.width, found.low, found.high)
        trend.seq = max(trend.seq, found.last_seq)


def _seen(job: Job) -> tuple[int | None, float | None]:
    return job.progress.step, job.progress.at


def _question(job: Job, trend: _Trend) -> LossQuestion:
    return LossQuestion(job_id=job.id, attempt=job.attempt, after_seq=trend.seq, width=trend.width)
