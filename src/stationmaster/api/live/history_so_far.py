"""What a client missed: pages of the history, from where it left off to where its live topic begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.api.live.frames import event_frames, log_frames, reading_frames
from stationmaster.station.base import Station
from stationmaster.station.news import Position, Topic, TopicKind
from stationmaster.station.wire.history import LogReader

_EVENTS = 500
_PIECES = 64
_READINGS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    frames: bytes
    last: int  # number of its last item
    is_last: bool  # the position covers nothing that follows it


class ReadPage(Protocol):
    def __call__(self, after: int, until: Position) -> HistoryPage:
        """The next page of what this position covers."""


def reader_of(topic: Topic, station: Station) -> ReadPage:
    """Reads pages of a topic's history, as the caller may see it. Waits for the store."""
    if topic.job_id is None:
        return lambda after, until: _events_of_all(station, after, until)
    job_id = topic.job_id
    if topic.kind is TopicKind.EVENTS:
        return lambda after, until: _events(station, job_id, after, until)
    if topic.kind is TopicKind.READINGS:
        return lambda after, until: _readings(station, job_id, after, until)
    return _logs(station, job_id, LogReader())


def _events_of_all(station: Station, after: int, until: Position) -> HistoryPage:
    found = station.events.after(after, limit=_EVENTS)
    events = [event for event in found if until.covers(event.seq)]
    last = found[-1].seq if found else after
    return HistoryPage(
        frames=event_frames(events, [min(event.seq, until.settled) for event in events]),
        last=last,
        is_last=len(found) < _EVENTS or last >= until.number,
    )


def _events(station: Station, job_id: str, after: int, until: Position) -> HistoryPage:
    found = station.events.of_job(job_id, after_version=after, limit=_EVENTS)
    events = [event for event in found if until.covers(event.job_version)]
    return HistoryPage(
        frames=event_frames(events, [event.job_version for event in events]),
        last=events[-1].job_version if events else after,
        is_last=len(found) < _EVENTS or len(events) < len(found),
    )


def _readings(station: Station, job_id: str, after: int, until: Position) -> HistoryPage:
    found = station.readings.numbered(job_id, after_seq=after, limit=_READINGS)
    readings = [(seq, reading) for seq, reading in found if until.covers(seq)]
    return HistoryPage(
        frames=reading_frames(readings),
        last=readings[-1][0] if readings else after,
        is_last=len(found) < _READINGS or len(readings) < len(found),
    )


def _logs(station: Station, job_id: str, reader: LogReader) -> ReadPage:
    def read(after: int, until: Position) -> HistoryPage:
        found = station.logs.of_job(job_id, after_seq=after, limit=_PIECES)
        pieces = [(seq, chunk) for seq, chunk in found if until.covers(seq)]
        return HistoryPage(
            frames=log_frames(pieces, reader),
            last=pieces[-1][0] if pieces else after,
            is_last=not found or len(pieces) < len(found),  # a page also ends when it has enough bytes
        )

    return read
