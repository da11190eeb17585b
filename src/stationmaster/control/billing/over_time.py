"""Spreads what machines cost over equal parts of time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stationmaster.model import CostLine
from stationmaster.money import ZERO, MicroDollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Equal parts of time: `count` of them from `start` on, each of `seconds`."""

    start: float
    seconds: float
    count: int

    @property
    def end(self) -> float:
        return self.start + self.seconds * self.count


def cost_within(line: CostLine, start: float, end: float, *, now: float) -> MicroDollars:
    """The part of a line's cost that falls between two times, by time."""
    return MicroDollars(_cost_before(line, end, now=now) - _cost_before(line, start, now=now))


def spread(line: CostLine, period: Period, *, now: float) -> Iterator[tuple[int, MicroDollars]]:
    """(number of the part, cost in it) for the parts in which the line cost anything.

    The parts of a line add up to exactly its cost.
    """
    ended = line.ended_at if line.ended_at is not None else now
    first = max(0, int((line.started_at - period.start) // period.seconds))
    last = min(period.count - 1, int((ended - period.start) // period.seconds))
    for part in range(first, last + 1):
        start = period.start + part * period.seconds
        amount = cost_within(line, start, start + period.seconds, now=now)
        if amount:
            yield part, amount


def cost_of_lines(lines: Iterable[CostLine], start: float, end: float, *, now: float) -> MicroDollars:
    """What several lines cost together between two times."""
    return MicroDollars(sum((cost_within(line, start, end, now=now) for line in lines), ZERO))


def _cost_before(line: CostLine, at: float, *, now: float) -> MicroDollars:
    ended = line.ended_at if line.ended_at is not None else now
    whole = line.so_far(now=now)
    if at <= line.started_at:
        return ZERO
    if at >= ended or ended <= line.started_at:
        return whole
    return MicroDollars(round(whole * (at - line.started_at) / (ended - line.started_at)))
