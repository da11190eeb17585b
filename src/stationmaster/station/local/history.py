"""The events, log and readings of a job, from the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from stationmaster.model import Event, LogChunk, StepReading
from stationmaster.station.history import LogMatch
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.jobs import LocalJobs

_PAGE = 1000


class LocalEvents:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store

    def of_job(self, job_id: str, *, after_version: int = 0, limit: int | None = None) -> Sequence[Event]:
        found: list[Event] = []
        while limit is None or len(found) < limit:
            wanted = _PAGE if limit is None else min(_PAGE, limit - len(found))
            page = self._store.events.of_job(job_id, after_version=after_version, limit=wanted)
            found += page
            if len(page) < wanted:
                break
            after_version = page[-1].job_version
        return found

    def after(self, seq: int, *, owner: str | None = None, limit: int = 500) -> Sequence[Event]:
        return self._store.events.after(seq, owner=owner, limit=limit)


class LocalLogs:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._store = installation.store

    def of_job(self, job_id: str, *, after_seq: int = 0, limit: int = 500) -> Sequence[tuple[int, LogChunk]]:
        return self._store.logs.of_job(job_id, after_seq=after_seq, limit=limit)

    def latest(self, job_id: str, *, limit: int = 100) -> Sequence[tuple[int, LogChunk]]:
        return self._store.logs.latest(job_id, limit=limit)

    def follow(self, job_id: str, *, after_seq: int = 0) -> Iterator[Sequence[tuple[int, LogChunk]]]:
        for _ in LocalJobs(self._installation).watch(job_id):
            while pieces := self.of_job(job_id, after_seq=after_seq):
                after_seq = pieces[-1][0]
                yield pieces

    def search(self, job_id: str, text: str, *, limit: int = 100, after: int = 0) -> Sequence[LogMatch]:
        from stationmaster.station.local.log_search import matches  # `logs` rarely searches

        return list(islice(matches(self._pieces(job_id), text), after, after + limit))

    def _pieces(self, job_id: str) -> Iterator[tuple[int, LogChunk]]:
        after = 0
        while page := self.of_job(job_id, after_seq=after):
            yield from page
            after = page[-1][0]


class LocalReadings:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store

    def of_job(self, job_id: str) -> Sequence[StepReading]:
        return self._store.readings.of_job(job_id)

    def numbered(self, job_id: str, *, after_seq: int = 0, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        return self._store.readings.numbered(job_id, after_seq=after_seq, limit=limit)

    def latest(self, job_id: str, *, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        return self._store.readings.latest(job_id, limit=limit)

    def loss_trend(self, job_id: str) -> Sequence[float]:
        from stationmaster.station.local.loss_trends import LossTrends  # only for who draws a loss

        return LossTrends(self._store).of([self._store.jobs.get(job_id)]).get(job_id, ())
