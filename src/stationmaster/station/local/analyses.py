"""Analyses of jobs, from the store."""

from __future__ import annotations

from functools import partial

from stationmaster.analysis.analyse import analyse
from stationmaster.analysis.recorded_run import MarketOffer
from stationmaster.config import monitoring_of
from stationmaster.control.results.recorded_job import JobSources, recorded_job
from stationmaster.errors import NotFound
from stationmaster.model import Job, State
from stationmaster.recipes.registry import find
from stationmaster.station.analysis import Analysis
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.market import market_offers

_TRAINING_IS_OVER = (State.FETCHING_RESULTS, State.FINALIZING, State.RELEASING, State.ENDED)


class LocalAnalyses:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._store = installation.store

    def of_job(self, job_id: str, *, again: bool = False, with_offers: bool = False) -> Analysis:
        job = self._store.jobs.get(job_id)
        stored = self.stored(job_id)
        attempt, is_running = self._last_attempt(job), job.state is State.EXECUTING
        if stored is not None and not again and not with_offers and stored.attempt >= attempt:
            return stored
        offers = market_offers(self._installation, job) if with_offers else ()
        report = analyse(recorded_job(job, self._sources(job, offers), attempt=attempt, is_running=is_running))
        is_kept = not is_running and not with_offers and self._store.analyses.put(job_id, attempt, report)
        return Analysis(report=report, attempt=attempt, created_at=self._store.now(), is_stored=is_kept)

    def stored(self, job_id: str) -> Analysis | None:
        found = self._store.analyses.of_job(job_id)
        if found is None:
            return None
        return Analysis(report=found.report, attempt=found.attempt, created_at=found.created_at)

    def _sources(self, job: Job, offers: tuple[MarketOffer, ...]) -> JobSources:
        settings = self._installation.settings
        return JobSources(
            store=self._store,
            find_recipe=partial(find, folders=settings.recipes),
            monitoring=monitoring_of(job.spec.monitoring, settings.monitoring),
            offers=offers,
        )

    def _last_attempt(self, job: Job) -> int:
        """The last attempt that has trained. Raises NotFound if none has."""
        if job.watching.trained:
            return job.attempt
        measured = {table.attempt for table in self._store.series.contents(job.id)}
        logged = {reading.attempt for reading in self._store.readings.of_job(job.id)}
        attempts = {number for number in measured | logged if number > 0}
        if not attempts:
            raise NotFound(
                f"job {job.id} has not trained yet, so there is nothing to analyse",
                hint=f"run `stationmaster show {job.id} --events` to see what happened",
            )
        return max(attempts)
