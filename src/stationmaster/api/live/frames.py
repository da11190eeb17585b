"""News as server-sent events: encoded once per topic, however many listen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stationmaster.model import Event, LogChunk, StepReading
from stationmaster.station.news import Batch, Topic
from stationmaster.station.owned.server_paths import without_paths
from stationmaster.station.wire.document import Document
from stationmaster.station.wire.events import EventDocument
from stationmaster.station.wire.history import LogReader, ReadingDocument

HEARTBEAT = b": still here\n\n"
END = b"event: end\ndata: {}\n\n"


def opening(retry_seconds: float) -> bytes:
    """The beginning of a stream: when a client that was cut off should come back."""
    return f"retry: {retry_seconds * 1000:.0f}\n\n".encode()


def place(number: int) -> bytes:
    """Where a client continues if it is cut off before anything was sent."""
    return b"id: %d\n\n" % number


def frame(document: Document, number: int | None) -> bytes:
    """
    >>> frame(Document(), 7)
    b'id: 7\\ndata: {}\\n\\n'
    """
    name = b"" if number is None else b"id: %d\n" % number
    return name + b"data: " + document.model_dump_json().encode() + b"\n\n"


def event_frames(events: Sequence[Event], numbers: Iterable[int]) -> bytes:
    """Events, each with the number from which a client continues."""
    encoded = zip(events, numbers, strict=True)
    return b"".join(frame(EventDocument.of(event), number) for event, number in encoded)


def log_frames(pieces: Iterable[tuple[int, LogChunk]], reader: LogReader) -> bytes:
    """Pieces of log. A client never continues inside a character: a piece that ends there has no number."""
    read = (reader.read(seq, chunk) for seq, chunk in pieces)
    return b"".join(frame(one.document, one.document.seq if one.is_whole else None) for one in read)


def reading_frames(readings: Iterable[tuple[int, StepReading]]) -> bytes:
    return b"".join(frame(ReadingDocument.of(seq, reading), seq) for seq, reading in readings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """One batch, encoded: for those who may see everything, and for each owner what is theirs."""

    everything: bytes
    of_owner: Mapping[str, bytes] = field(default_factory=dict)  # only of the topic of all jobs
    for_users: bytes | None = None  # of a job's topic, whose listeners may see it

    def seen_by(self, user: str | None) -> bytes:
        """`user` None: an administrator."""
        if user is None:
            return self.everything
        return self.of_owner.get(user, b"") if self.for_users is None else self.for_users


class Encoder:
    """Encodes the batches of all topics. Not for several threads at once."""

    def __init__(self) -> None:
        self._readers: dict[Topic, LogReader] = {}

    def encode(self, batch: Batch) -> Frames:
        topic, values = batch.topic, [item.value for item in batch.items]
        if topic.job_id is None:
            return _events_of_all(batch)
        events = [value for value in values if isinstance(value, Event)]
        pieces = [(item.number, item.value) for item in batch.items if isinstance(item.value, LogChunk)]
        readings = [(item.number, item.value) for item in batch.items if isinstance(item.value, StepReading)]
        versions = [event.job_version for event in events]
        others = log_frames(pieces, self._readers.setdefault(topic, LogReader()) if pieces else LogReader())
        others += reading_frames(readings)
        users_events = [_for_users(event) for event in events]
        return Frames(
            everything=event_frames(events, versions) + others if events else others,
            for_users=event_frames(users_events, versions) + others if events else others,
        )

    def forget(self, topic: Topic) -> None:
        self._readers.pop(topic, None)


def _for_users(event: Event) -> Event:
    """The event as its owner sees it in pages too."""
    return replace(event, payload=without_paths(event.payload))


def _events_of_all(batch: Batch) -> Frames:
    settled = batch.position.settled
    last = len(batch.items) - 1
    everything: list[bytes] = []
    by_owner: dict[str, list[bytes]] = {}
    for place, item in enumerate(batch.items):
        assert isinstance(item.value, Event), "only events have a topic for all jobs"
        number = settled if place == last else min(item.number, settled)
        everything.append(event_frames([item.value], [number]))
        if item.owner is not None:
            by_owner.setdefault(item.owner, []).append(event_frames([_for_users(item.value)], [number]))
    return Frames(
        everything=b"".join(everything),
        of_owner={owner: b"".join(parts) for owner, parts in by_owner.items()},
    )
