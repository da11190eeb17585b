"""What a user's own jobs cost."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import NotFound
from stationmaster.model import SINGLE_USER, Caller
from stationmaster.station.costs import Budget, Costs, CostsOverTime, PaidLine, Period, SplitBy
from stationmaster.station.jobs import Jobs
from stationmaster.station.owned.rights import own_job


class OwnedCosts:
    def __init__(self, caller: Caller, costs: Costs, jobs: Jobs) -> None:
        self._caller = caller
        self._all = costs
        self._jobs = jobs

    def lines(
        self,
        job_id: str | None = None,
        *,
        owner: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[PaidLine]:
        if job_id is not None:
            return self._all.lines(own_job(self._caller, self._jobs, job_id).id)
        if owner not in (None, self._caller.user):
            return []
        return self._all.lines(owner=self._caller.user, after=after, limit=limit)

    def budget(self, user: str = SINGLE_USER) -> Budget:
        if user != self._caller.user:
            raise NotFound(f"there is no user {user}", hint="run `stationmaster users list` to see them")
        return self._all.budget(user)

    def over_time(self, period: Period, *, split_by: SplitBy | None = None, owner: str | None = None) -> CostsOverTime:
        """Always of the caller's jobs: there is nothing else to see, whoever is asked for."""
        return self._all.over_time(period, split_by=split_by, owner=self._caller.user)
