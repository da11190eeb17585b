"""Replays of made-up traces and their judgement, for the tests of the stall watch."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.parsers import LogReader
from stationmaster.watch.escalation import CLEARED, FLAGGED, TERMINATE, StallEvent
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.replay import Trace, replay_trace
from stationmaster.watch.stillness import MachineMoment
from tests.support.watching.trace_maker import GRACE, POLL, MadeTrace

SLACK = 1.0


def events_of(
    made: MadeTrace, policy: StallPolicy | None = None, *, samples: Sequence[tuple[float, MachineMoment]] = ()
) -> list[StallEvent]:
    trace = Trace(chunks=made.chunks, samples=samples, end=made.end, poll=POLL, total_steps=made.total_steps)
    return list(replay_trace(trace, LogReader("auto", total_steps=made.total_steps), policy or StallPolicy()))


def complaint(made: MadeTrace, events: list[StallEvent]) -> str | None:
    """What is wrong with the events of a run, given what was put into it; None if nothing is."""
    left = [(event.kind, event.at) for event in events]
    for stall in made.stalls:
        kind, at = left.pop(0) if left else (None, 0.0)
        if kind != FLAGGED or not stall.flag_after - SLACK <= at <= stall.flag_by + SLACK:
            return f"{kind} at {at:.0f} where a flag was due from {stall.flag_after:.0f} to {stall.flag_by:.0f}"
        flagged_at = at
        kind, at = left.pop(0) if left else (None, 0.0)
        if stall.resumes_at is not None and stall.clears_by is not None:
            if kind != CLEARED or not stall.resumes_at - SLACK <= at <= stall.clears_by + SLACK:
                return f"{kind} at {at:.0f} where a clear was due from {stall.resumes_at:.0f} to {stall.clears_by:.0f}"
        elif kind != TERMINATE or not GRACE - SLACK <= at - flagged_at <= GRACE + 5 * POLL:
            return f"{kind} at {at:.0f} where the end was due after the grace from {flagged_at:.0f}"
    return f"{left[0][0]} at {left[0][1]:.0f} in a healthy part" if left else None
