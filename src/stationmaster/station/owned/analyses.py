"""Analyses of a user's own jobs."""

from __future__ import annotations

from stationmaster.errors import NotFound
from stationmaster.model import Caller, Right
from stationmaster.station.analysis import Analyses, Analysis
from stationmaster.station.jobs import Jobs
from stationmaster.station.owned.rights import own_job, require


class OwnedAnalyses:
    def __init__(self, caller: Caller, analyses: Analyses, jobs: Jobs) -> None:
        self._caller = caller
        self._all = analyses
        self._jobs = jobs

    def of_job(self, job_id: str, *, again: bool = False, with_offers: bool = False) -> Analysis:
        if again:
            require(self._caller, Right.TRAIN)
        return self._all.of_job(self._own(job_id), again=again, with_offers=with_offers)

    def stored(self, job_id: str) -> Analysis | None:
        try:
            return self._all.stored(self._own(job_id))
        except NotFound:
            return None

    def _own(self, job_id: str) -> str:
        return own_job(self._caller, self._jobs, job_id).id
