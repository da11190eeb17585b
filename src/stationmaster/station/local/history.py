"""The events, log and readings of a job, from the store."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.model import Event, LogChunk, StepReading
from stationmaster.station.local.installation import Installation


class LocalEvents:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store

    def of_job(self, job_id: str, *, after_version: int = 0) -> Sequence[Event]:
        found: list[Event] = []
        while page := self._store.events.of_job(job_id, after_version=after_version):
            found += page
            after_version = page[-1].job_version
        return found


class LocalLogs:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store

    def of_job(self, job_id: str, *, after_seq: int = 0) -> Sequence[tuple[int, LogChunk]]:
        return self._store.logs.of_job(job_id, after_seq=after_seq)


class LocalReadings:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store

    def of_job(self, job_id: str) -> Sequence[StepReading]:
        return self._store.readings.of_job(job_id)
