"""What happens while a client listens: new events, pieces of log and readings, by topic. Not part of the Station
protocol: the HTTP service fans it out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from stationmaster.model import Event, LogChunk, StepReading


class TopicKind(StrEnum):
    EVENTS = "events"
    LOGS = "logs"
    READINGS = "readings"


@dataclass(frozen=True, slots=True)
class Topic:
    kind: TopicKind
    job_id: str | None = None  # None: the events of all jobs


ALL_EVENTS = Topic(TopicKind.EVENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What of a topic was handed over: everything up to `number`, except for the `missing` ones, which may follow."""

    number: int
    missing: frozenset[int] = frozenset()

    @property
    def settled(self) -> int:
        """Everything up to this number was handed over."""
        return min(self.missing) - 1 if self.missing else self.number

    def covers(self, number: int) -> bool:
        return number <= self.number and number not in self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class NewsItem:
    """Something new. Its number is an event's version in a job's topic, otherwise the `seq`."""

    number: int
    value: Event | LogChunk | StepReading
    owner: str | None = None  # of the event's job; None: only administrators may see it


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is new in a topic, in order, and the position after it. The first batch of a topic is empty."""

    topic: Topic
    items: tuple[NewsItem, ...]
    position: Position
    is_over: bool = False  # the job has ended: nothing follows


class News(Protocol):
    def follow(self, topic: Topic, deliver: Callable[[Batch], None]) -> int:
        """Deliver an empty batch with the position now, then everything that follows, in order and once.

        `deliver` is called from any thread, one call at a time, and must return at once. Returns a number for
        `unfollow`. A topic that is followed already begins anew. Raises StoreError.
        """

    def unfollow(self, topic: Topic, number: int) -> None:
        """No longer deliver, unless it has been followed anew since."""

    def close(self) -> None: ...
