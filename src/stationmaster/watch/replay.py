"""Replays a recorded run and returns the watch's events, to tune thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stationmaster.parsers.reader import LogReader
from stationmaster.watch.escalation import TERMINATE, StallEvent
from stationmaster.watch.log_moment import log_moment
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.signs import SignsOfLife
from stationmaster.watch.stillness import MachineMoment
from stationmaster.watch.watcher import StallWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a watcher received: (seconds, text) in order, samples likewise, and until when it watched."""

    chunks: Sequence[tuple[float, str]]
    samples: Sequence[tuple[float, MachineMoment]] = ()
    end: float
    poll: float = 60.0
    total_steps: float | None = None
    framework: str = "auto"


def replay_trace(trace: Trace, reader: LogReader, policy: StallPolicy) -> Iterator[StallEvent]:
    """The events of a watch that looks at every multiple of the poll interval, until it stops the run.

    Where samples are about to prove a stall, it looks in between as well.
    """
    watch = StallWatch(policy, total_steps=trace.total_steps)
    signs = SignsOfLife()
    chunks = iter(trace.chunks)
    chunk = next(chunks, None)
    samples = iter(trace.samples)
    sample = next(samples, None)
    number = math.floor((chunk[0] if chunk else 0.0) / trace.poll)
    now = number * trace.poll
    while now <= trace.end:
        while chunk is not None and chunk[0] <= now:
            at, text = chunk
            watch.observe(log_moment(reader.feed(text.encode(), at), at=at, moved=signs.feed(text)))
            chunk = next(chunks, None)
        while sample is not None and sample[0] <= now:
            watch.observe_machine(sample[1])
            sample = next(samples, None)
        look = watch.look(now)
        if look.event is not None:
            yield look.event
            if look.event.kind == TERMINATE:
                return
        number += now >= number * trace.poll
        again = now + look.again_in if look.again_in is not None else math.inf
        now = min(number * trace.poll, again)
