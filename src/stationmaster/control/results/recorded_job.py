"""One attempt of a job as an analysis reads it: its series, log and config from the store, and what home knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stationmaster.analysis.configs.base import TrainerConfig
from stationmaster.analysis.configs.parameters import trainer_config_of
from stationmaster.analysis.recorded_run import Experience, MarketOffer, RecordedRun
from stationmaster.control.results.run_info import KINDS_OF_FACTS, home_facts
from stationmaster.errors import StationmasterError
from stationmaster.model import Job
from stationmaster.recipes.configs import ConfigFile
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, render_configs
from stationmaster.recipes.plan_steps import training_places
from stationmaster.recipes.registry import StoredRecipe
from stationmaster.recipes.schema import Recipe
from stationmaster.series.joining import IMPORTED, join_attempts, steps_of_readings
from stationmaster.series.schema import OWN_TABLES
from stationmaster.series.table import Table
from stationmaster.settings import MonitoringSettings
from stationmaster.store.store import Store

_MOST_LOG_BYTES = 16 << 20
_LOG_HEAD_BYTES = 1 << 20  # of a longer log: the start has the settings, the end what went wrong
_SOMEWHERE = "/job"  # where its job folder was does not matter to a config's settings
_USUAL = MonitoringSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSources:
    """Where the parts of a recorded job come from."""

    store: Store
    find_recipe: Callable[[str], StoredRecipe]
    monitoring: MonitoringSettings  # of the job
    offers: Sequence[MarketOffer] = field(default=())
    lost_machines: tuple[int, float] | None = None  # None: read with the rest


def recorded_job(job: Job, sources: JobSources, *, attempt: int, is_running: bool = False) -> RecordedRun:
    """Read one attempt of a job. A recipe that was removed since only costs the config. Raises StoreError."""
    store = sources.store
    recipe = _recipe(job, sources.find_recipe)
    tables = _tables(job, store, attempt)
    facts = _home_facts(job, store, recipe, attempt=attempt)
    info = {**_machine_facts(tables.get("RunInfo")), **facts, **_thresholds(sources.monitoring)}
    failures, hours = sources.lost_machines or store.runs.lost_machines()
    return RecordedRun(
        job_id=job.id,
        tables=tables,
        info={**info, "running": "1"} if is_running else info,
        log=_log(job, store, attempt, recipe),
        config=None if recipe is None else _config(recipe, job),
        experience=Experience(
            failures_per_hour=failures / hours if hours else None, failure_hours=hours, offers=tuple(sources.offers)
        ),
    )


def known_at_home(job: Job, store: Store, find_recipe: Callable[[str], StoredRecipe]) -> dict[str, str]:
    """Return what home knows of the job's current attempt, under the keys of RunInfo."""
    return _home_facts(job, store, _recipe(job, find_recipe), attempt=job.attempt)


def _home_facts(job: Job, store: Store, recipe: Recipe | None, *, attempt: int) -> dict[str, str]:
    framework = None if recipe is None or recipe.framework == "auto" else recipe.framework
    events = store.events.of_jobs([job.id], kinds=KINDS_OF_FACTS)[job.id]
    return home_facts(job, attempt=attempt, events=events, costs=store.costs.of_job(job.id), framework=framework)


def _recipe(job: Job, find_recipe: Callable[[str], StoredRecipe]) -> Recipe | None:
    try:
        return find_recipe(job.spec.recipe).recipe
    except StationmasterError:
        return None


def _config(recipe: Recipe, job: Job) -> TrainerConfig | None:
    try:
        parameters = resolve(recipe, dict(job.spec.parameters))
        return trainer_config_of(recipe, parameters, files=_config_files(recipe, job))
    except StationmasterError:
        return None


def _config_files(recipe: Recipe, job: Job) -> tuple[ConfigFile, ...]:
    identity = JobIdentity(id=job.id, name=job.spec.name, trigger=job.spec.trigger or "", attempt=job.attempt)
    try:
        return render_configs(recipe, parameters=job.spec.parameters, job=identity, machine_root=_SOMEWHERE)
    except StationmasterError:
        return ()


def _tables(job: Job, store: Store, attempt: int) -> dict[str, Table]:
    """Return the rows of the attempt alone; imported ones fill in, and the log's steps if none were recorded."""
    found = store.series.tables(job.id, attempts=(IMPORTED, attempt))
    own = {number: [table for table in tables if table.name not in OWN_TABLES] for number, tables in found.items()}
    if not any(table.name == "StepMetric" for tables in own.values() for table in tables):
        readings = [reading for reading in store.readings.of_job(job.id) if reading.attempt == attempt]
        if readings:
            own.setdefault(attempt, []).append(steps_of_readings(readings))
    return join_attempts(own)


def _machine_facts(table: Table | None) -> dict[str, str]:
    if table is None:
        return {}
    return {key: value for key, value in table.tuples("key", "value") if value is not None}


def _thresholds(monitoring: MonitoringSettings) -> dict[str, str]:
    """Return the thresholds that were set; those of a trainer's own config count where they were not."""
    names = ("memory_warning_threshold", "memory_critical_threshold")
    return {name: str(value) for name in names if (value := getattr(monitoring, name)) != getattr(_USUAL, name)}


def _log(job: Job, store: Store, attempt: int, recipe: Recipe | None) -> str:
    """Return what the training step printed in its last try; the whole log where the recipe is not known.

    Rows and exit code are compared with how the log ends, and that of an earlier try ends with its own error.
    """
    training = None if recipe is None else {str(place) for place in training_places(recipe)}
    kept, stream = bytearray(), ""
    for chunk in store.logs.chunks(job.id, attempt=attempt):
        if training is not None and chunk.stream.partition(".")[0] not in training:
            continue
        if training is not None and chunk.stream != stream:
            kept, stream = bytearray(), chunk.stream
        kept += chunk.data
        if len(kept) > 2 * _MOST_LOG_BYTES:
            _cut_middle(kept)
    _cut_middle(kept)
    return bytes(kept).decode(errors="replace")


def _cut_middle(log: bytearray) -> None:
    if len(log) > _MOST_LOG_BYTES:
        del log[_LOG_HEAD_BYTES : len(log) - (_MOST_LOG_BYTES - _LOG_HEAD_BYTES)]
