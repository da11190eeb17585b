"""The overview of this installation's jobs: a few queries however many jobs there are."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.control.billing.over_time import cost_of_lines
from stationmaster.model import Job, State
from stationmaster.money import ZERO, MicroDollars
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.loss_trends import LossTrends
from stationmaster.station.local.overview_rows import Belongings, overview_row, summary_of
from stationmaster.station.overview import DEFAULT_ENDED, Overview, OverviewRow

_AT_ONCE = 500  # databases limit the number of values in a query
_MOST_UNFINISHED = 10_000
_DAY_SECONDS = 86_400.0


class LocalOverviews:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store
        self._trends = LossTrends(installation.store)

    def look(
        self, *, ended_limit: int = DEFAULT_ENDED, owner: str | None = None, today_from: float | None = None
    ) -> Overview:
        now = self._store.now()
        jobs = self._store.jobs.listed(with_ended=False, limit=_MOST_UNFINISHED, owner=owner)
        if ended_limit:
            jobs += self._store.jobs.listed(with_ended=True, state=State.ENDED, limit=ended_limit, owner=owner)
        rows = self._rows(jobs, now=now)
        midnight = now - now % _DAY_SECONDS if today_from is None else today_from
        lines = [line for line, _ in self._store.costs.between(midnight, now, owner=owner)]
        billing = [line for line in lines if line.ended_at is None]
        so_far = sum((line.so_far(now=now) for line in billing), ZERO)
        summary = summary_of(
            rows,
            failed=self._store.jobs.count_failed_since(midnight, owner=owner),
            price=MicroDollars(sum((line.rate_per_hour for line in billing), ZERO)),
            today=cost_of_lines(lines, midnight, now, now=now),
            total=MicroDollars(self._store.costs.closed_total(owner=owner) + so_far),
        )
        return Overview(as_of=now, summary=summary, rows=tuple(rows))

    def _rows(self, jobs: Sequence[Job], *, now: float) -> list[OverviewRow]:
        trends = self._trends.of(jobs)
        rows: list[OverviewRow] = []
        for first in range(0, len(jobs), _AT_ONCE):
            rows += self._some_rows(jobs[first : first + _AT_ONCE], trends, now=now)
        return rows

    def _some_rows(self, jobs: Sequence[Job], trends: dict[str, tuple[float, ...]], *, now: float) -> list[OverviewRow]:
        ids = [job.id for job in jobs]
        rentals, costs = self._store.rentals.of_jobs(ids), self._store.costs.of_jobs(ids)
        alerts, health = self._store.alerts.open_of_jobs(ids), self._store.analyses.health_of(ids)
        seeking = [job.id for job in jobs if job.state is State.PROVISIONING]
        waiting = self._store.events.of_jobs(seeking, kinds=("waiting_for_offer",)) if seeking else {}
        return [
            overview_row(
                job,
                Belongings(
                    rentals=rentals[job.id],
                    costs=costs[job.id],
                    alerts=alerts[job.id],
                    waiting=waiting.get(job.id, ()),
                    trend=trends.get(job.id, ()),
                    health=health.get(job.id),
                ),
                now=now,
            )
            for job in jobs
        ]
