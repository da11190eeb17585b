"""The events, log and readings of jobs on a server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from stationmaster.errors import NotFound, ServerError, TooManyRequests, UserError
from stationmaster.lifecycle import TERMINAL
from stationmaster.model import Event, LogChunk, StepReading
from stationmaster.station.history import LogMatch
from stationmaster.station.http.connection import Connection
from stationmaster.station.http.following import Stream
from stationmaster.station.http.jobs import HttpJobs, path_of_job
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.events import EventDocument
from stationmaster.station.wire.history import (
    HistoryPage,
    LogDocument,
    LogMatchDocument,
    LossTrendDocument,
    ReadingDocument,
)

_EVENTS = 1000
_PIECES = 500
_READINGS = 5000
_MATCHES = 1000
_LOOK_SECONDS = 1.0


class HttpEvents:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_job(self, job_id: str, *, after_version: int = 0, limit: int | None = None) -> Sequence[Event]:
        found: list[Event] = []
        while limit is None or len(found) < limit:
            wanted = _EVENTS if limit is None else min(_EVENTS, limit - len(found))
            path, page = f"{path_of_job(job_id)}/events", HistoryPage[EventDocument]
            answer = self._connection.get(path, page, after=after_version, limit=wanted, exact=True)
            found += [document.value() for document in answer.items]
            if answer.next is None:
                break
            after_version = int(answer.next)
        return found

    def after(self, seq: int, *, owner: str | None = None, limit: int = 500) -> Sequence[Event]:
        if owner is not None:
            raise UserError("a server answers with the events that its caller may see", hint="use that user's token")
        answer = self._connection.get("/api/events", HistoryPage[EventDocument], after=seq, limit=min(limit, _EVENTS))
        return [document.value() for document in answer.items]


class HttpLogs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_job(self, job_id: str, *, after_seq: int = 0, limit: int = 500) -> Sequence[tuple[int, LogChunk]]:
        path, page = f"{path_of_job(job_id)}/logs", HistoryPage[LogDocument]
        answer = self._connection.get(path, page, after=after_seq, limit=min(limit, _PIECES), exact=True)
        return [document.value() for document in answer.items]

    def latest(self, job_id: str, *, limit: int = 100) -> Sequence[tuple[int, LogChunk]]:
        path, page = f"{path_of_job(job_id)}/logs", HistoryPage[LogDocument]
        answer = self._connection.get(path, page, latest=True, limit=min(limit, _PIECES), exact=True)
        return [document.value() for document in answer.items]

    def follow(self, job_id: str, *, after_seq: int = 0) -> Iterator[Sequence[tuple[int, LogChunk]]]:
        """By a live stream; by pages where the server has none for us, and whenever the connection is lost."""
        jobs = HttpJobs(self._connection)
        while True:
            try:
                for message in Stream(self._connection, f"{path_of_job(job_id)}/logs", after=after_seq):
                    if message.kind == "end":
                        return
                    seq, chunk = _piece(message.data)
                    if seq > after_seq:
                        after_seq = seq
                        yield [(seq, chunk)]
            except (ServerError, TooManyRequests):
                pass  # the next lines raise if the server is really gone
            is_over = jobs.view(job_id).job.state in TERMINAL
            while pieces := self.of_job(job_id, after_seq=after_seq):
                after_seq = pieces[-1][0]
                yield pieces
            if is_over:
                return
            time.sleep(_LOOK_SECONDS)

    def search(self, job_id: str, text: str, *, limit: int = 100, after: int = 0) -> Sequence[LogMatch]:
        found: list[LogMatch] = []
        while len(found) < limit:
            path, wanted = f"{path_of_job(job_id)}/logs/search", min(_MATCHES, limit - len(found))
            answer = self._connection.get(
                path, Page[LogMatchDocument], text=text, after=after, limit=wanted, exact=True
            )
            found += [document.value() for document in answer.items]
            if answer.next is None:
                break
            after = int(answer.next)
        return found


class HttpReadings:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_job(self, job_id: str) -> Sequence[StepReading]:
        found: list[StepReading] = []
        after = 0
        while page := self.numbered(job_id, after_seq=after, limit=_READINGS):
            found += [reading for _, reading in page]
            after = page[-1][0]
        return found

    def numbered(self, job_id: str, *, after_seq: int = 0, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        path, page = f"{path_of_job(job_id)}/readings", HistoryPage[ReadingDocument]
        answer = self._connection.get(path, page, after=after_seq, limit=min(limit, _READINGS), exact=True)
        return [document.value() for document in answer.items]

    def latest(self, job_id: str, *, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        path, page = f"{path_of_job(job_id)}/readings", HistoryPage[ReadingDocument]
        answer = self._connection.get(path, page, latest=True, limit=min(limit, _READINGS), exact=True)
        return [document.value() for document in answer.items]

    def loss_trend(self, job_id: str) -> Sequence[float]:
        try:
            path = f"{path_of_job(job_id)}/readings/trend"
            return self._connection.get(path, LossTrendDocument, exact=True).loss
        except NotFound:
            HttpJobs(self._connection).view(job_id)  # raises if it is the job that is not there
            return ()  # an older server


def _piece(data: str) -> tuple[int, LogChunk]:
    try:
        return LogDocument.model_validate_json(data).value()
    except ValidationError:
        raise ServerError("the server streams something else than a log", hint="update Stationmaster") from None
