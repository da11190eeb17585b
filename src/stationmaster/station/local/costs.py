"""What machines cost, split into training, stalled and idle time."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.control.billing.breakdown import shares_of
from stationmaster.control.billing.over_time import Period, spread
from stationmaster.model import SINGLE_USER, Event
from stationmaster.money import ZERO, MicroDollars
from stationmaster.station.costs import Budget, CostsOverTime, PaidLine, SplitBy
from stationmaster.station.cursor import place_of
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.wrong_names import no_such_user
from stationmaster.store.costs import KINDS_OF_PAID_TIME

_AT_ONCE = 500  # databases limit the number of values in a query


class LocalCosts:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store
        self._limits = installation.settings.limits

    def lines(
        self,
        job_id: str | None = None,
        *,
        owner: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[PaidLine]:
        if job_id is not None:
            lines = self._store.costs.of_job(job_id)
        else:
            place = None
            if after is not None:
                at, (label, kind) = place_of(after, names=2)
                place = (at, label, kind)
            lines = self._store.costs.listed(owner=owner, after=place, limit=limit)
        now = self._store.now()
        events = self._paid_time(sorted({line.job_id for line in lines}))
        return [PaidLine(line=line, shares=shares_of(line, events[line.job_id], now=now)) for line in lines]

    def budget(self, user: str = SINGLE_USER) -> Budget:
        if user != SINGLE_USER and self._store.users.find(user) is None:
            raise no_such_user(self._store, user)
        return Budget(
            user=user,
            daily_limit=self._limits.daily_spend or None,
            committed=self._store.ledger.committed_today(user),
            hourly_alert=self._limits.hourly_alert or None,
            max_rentals=self._limits.max_rentals,
        )

    def over_time(self, period: Period, *, split_by: SplitBy | None = None, owner: str | None = None) -> CostsOverTime:
        now = self._store.now()
        amounts = [ZERO] * period.count
        split: list[dict[str, MicroDollars]] = [{} for _ in range(period.count if split_by else 0)]
        for line, provider in self._store.costs.between(period.start, period.end, owner=owner):
            name = line.job_id if split_by is SplitBy.JOB else provider or "unknown"
            for part, amount in spread(line, period, now=now):
                amounts[part] = MicroDollars(amounts[part] + amount)
                if split:
                    split[part][name] = MicroDollars(split[part].get(name, ZERO) + amount)
        return CostsOverTime(period=period, amounts=tuple(amounts), split=tuple(split))

    def _paid_time(self, job_ids: Sequence[str]) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        for first in range(0, len(job_ids), _AT_ONCE):
            found |= self._store.events.of_jobs(job_ids[first : first + _AT_ONCE], kinds=KINDS_OF_PAID_TIME)
        return found
