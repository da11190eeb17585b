"""Heartbeats of a job, and the log of its progress: them and its events together."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, Self

from pydantic import Field

from stationmaster.event_sentences import heartbeat_sentence
from stationmaster.model import Event, Heartbeat, Job
from stationmaster.station.wire.document import Document, Instant, Number
from stationmaster.station.wire.events import EventDocument


class HeartbeatDocument(Document):
    """How far a job was when its machine answered. Of a long run the older ones are thinned."""

    at: Instant
    """When the machine answered."""
    kind: Literal["heartbeat"]
    """Always `heartbeat`, which tells it from an event."""
    step: str | None = Field(default=None, examples=["train"])
    """The step of the plan that ran."""
    percent: float | None = None
    """Of the training's steps."""
    eta_seconds: Number | None = None
    """Time that the training still needed."""
    sentence: str = Field(default="", examples=["Step train: 45.2%, about 12m left."])
    """The same for people."""

    @classmethod
    def of(cls, beat: Heartbeat) -> Self:
        return cls(
            at=beat.at,
            kind="heartbeat",
            step=beat.step,
            percent=beat.percent,
            eta_seconds=beat.eta_seconds,
            sentence=heartbeat_sentence(beat.step, beat.percent, beat.eta_seconds),
        )

    def value(self) -> Heartbeat:
        return Heartbeat(at=self.at, step=self.step, percent=self.percent, eta_seconds=self.eta_seconds)


def progress_log(job: Job, events: Sequence[Event]) -> tuple[HeartbeatDocument | EventDocument, ...]:
    """The events with the job's heartbeats between them; nothing without events, as in lists."""
    if not events:
        return ()
    told = (EventDocument.of(event) for event in events)
    return tuple(heapq.merge(told, map(HeartbeatDocument.of, job.watching.heartbeats), key=attrgetter("at")))
