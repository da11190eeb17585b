"""Analyses of a server's jobs."""

from __future__ import annotations

from stationmaster.errors import NotFound
from stationmaster.station.analysis import Analysis
from stationmaster.station.http.connection import Connection
from stationmaster.station.http.jobs import path_of_job
from stationmaster.station.wire.analysis import AnalysisDocument


class HttpAnalyses:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_job(self, job_id: str, *, again: bool = False, with_offers: bool = False) -> Analysis:
        found = self._connection.send(
            "POST" if again else "GET",
            _path(job_id),
            parameters={"with_offers": with_offers, "exact": True},
            patient=True,
        )
        return self._connection.read(found, AnalysisDocument).value()

    def stored(self, job_id: str) -> Analysis | None:
        try:
            return self._connection.get(_path(job_id), AnalysisDocument, stored=True, exact=True).value()
        except NotFound:
            return None


def _path(job_id: str) -> str:
    return f"{path_of_job(job_id)}/analysis"
