"""Events, logs and readings of a user's own jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stationmaster.errors import NotFound
from stationmaster.model import Caller, Event, LogChunk, StepReading
from stationmaster.station.base import Station
from stationmaster.station.history import LogMatch
from stationmaster.station.owned.rights import own_job
from stationmaster.station.owned.server_paths import without_paths


class OwnedEvents:
    def __init__(self, caller: Caller, station: Station) -> None:
        self._caller = caller
        self._all = station

    def of_job(self, job_id: str, *, after_version: int = 0, limit: int | None = None) -> Sequence[Event]:
        own_job(self._caller, self._all.jobs, job_id)
        return _without_paths(self._all.events.of_job(job_id, after_version=after_version, limit=limit))

    def after(self, seq: int, *, owner: str | None = None, limit: int = 500) -> Sequence[Event]:
        if owner not in (None, self._caller.user):
            raise NotFound(f"there is no user {owner}")
        return _without_paths(self._all.events.after(seq, owner=self._caller.user, limit=limit))


def _without_paths(events: Sequence[Event]) -> Sequence[Event]:
    return [replace(event, payload=without_paths(event.payload)) for event in events]


class OwnedLogs:
    def __init__(self, caller: Caller, station: Station) -> None:
        self._caller = caller
        self._all = station

    def of_job(self, job_id: str, *, after_seq: int = 0, limit: int = 500) -> Sequence[tuple[int, LogChunk]]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.logs.of_job(job_id, after_seq=after_seq, limit=limit)

    def latest(self, job_id: str, *, limit: int = 100) -> Sequence[tuple[int, LogChunk]]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.logs.latest(job_id, limit=limit)

    def follow(self, job_id: str, *, after_seq: int = 0) -> Iterator[Sequence[tuple[int, LogChunk]]]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.logs.follow(job_id, after_seq=after_seq)

    def search(self, job_id: str, text: str, *, limit: int = 100, after: int = 0) -> Sequence[LogMatch]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.logs.search(job_id, text, limit=limit, after=after)


class OwnedReadings:
    def __init__(self, caller: Caller, station: Station) -> None:
        self._caller = caller
        self._all = station

    def of_job(self, job_id: str) -> Sequence[StepReading]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.readings.of_job(job_id)

    def numbered(self, job_id: str, *, after_seq: int = 0, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.readings.numbered(job_id, after_seq=after_seq, limit=limit)

    def latest(self, job_id: str, *, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.readings.latest(job_id, limit=limit)

    def loss_trend(self, job_id: str) -> Sequence[float]:
        own_job(self._caller, self._all.jobs, job_id)
        return self._all.readings.loss_trend(job_id)
