"""Where a job's money went: time that trained, time that stalled, idle time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stationmaster.model import CostLine, Event, State
from stationmaster.money import ZERO, MicroDollars
from stationmaster.store.costs import KINDS_OF_PAID_TIME

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The parts of a cost; together they are the whole of it."""

    training: MicroDollars = ZERO
    stalled: MicroDollars = ZERO  # a training ran, but made no progress
    idle: MicroDollars = ZERO  # a machine was billed before its training started and after it ended
    setup: MicroDollars = ZERO  # the part of `idle` before a training started: the machine was got ready

    @property
    def total(self) -> MicroDollars:
        return MicroDollars(self.training + self.stalled + self.idle)

    def __add__(self, other: Shares) -> Shares:
        return Shares(
            training=MicroDollars(self.training + other.training),
            stalled=MicroDollars(self.stalled + other.stalled),
            idle=MicroDollars(self.idle + other.idle),
            setup=MicroDollars(self.setup + other.setup),
        )


def shares_of(line: CostLine, events: Sequence[Event], *, now: float) -> Shares:
    """The shares of a cost line, by the events of its job. An open line is counted up to `now`.

    Only events of KINDS_OF_PAID_TIME count: a removed job has no others.
    """
    events = [event for event in events if event.kind in KINDS_OF_PAID_TIME]
    amount = line.so_far(now=now)
    whole = (line.started_at, line.ended_at if line.ended_at is not None else now)
    seconds = whole[1] - whole[0]
    if seconds <= 0 or not amount:
        return Shares(idle=amount)
    running_spans = _spans(events, "training_started", (), now=now)
    stalled_seconds = _overlap(whole, _spans(events, "stall_flagged", ("stall_cleared",), now=now))
    running_seconds = _overlap(whole, running_spans)
    setup_seconds = _until_first(whole, running_spans)
    stalled = round(amount * min(stalled_seconds, running_seconds) / seconds)
    running = round(amount * running_seconds / seconds)
    idle = MicroDollars(amount - max(running, stalled))
    return Shares(
        training=MicroDollars(max(0, running - stalled)),
        stalled=MicroDollars(stalled),
        idle=idle,
        setup=min(idle, MicroDollars(round(amount * setup_seconds / seconds))),
    )


def _spans(events: Iterable[Event], begins: str, ends: tuple[str, ...], *, now: float) -> list[Span]:
    """From each event of one kind to the next of the others, or to the end of the training at the latest."""
    spans: list[Span] = []
    since: float | None = None
    for event in events:
        if event.kind == begins:
            since = event.at if since is None else since
        elif since is not None and (event.kind in ends or _ends_training(event)):
            spans.append((since, event.at))
            since = None
    return spans if since is None else [*spans, (since, now)]


def _ends_training(event: Event) -> bool:
    return event.kind == "state" and event.payload.get("from") == State.EXECUTING.value


def _overlap(whole: Span, spans: Iterable[Span]) -> float:
    return sum(max(0.0, min(whole[1], end) - max(whole[0], start)) for start, end in spans)


def _until_first(whole: Span, spans: Iterable[Span]) -> float:
    """From the beginning to the first of the spans; all of it if none lies in it."""
    starts = (max(whole[0], start) for start, end in spans if end > whole[0] and start < whole[1])
    return min(starts, default=whole[1]) - whole[0]
