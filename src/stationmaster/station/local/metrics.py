"""The series of jobs and watched machines, from the store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from stationmaster.control.results.recorded_job import known_at_home
from stationmaster.errors import NotFound, UserError
from stationmaster.recipes.registry import find
from stationmaster.series.blocks import MOST_ROWS, Block, block_of
from stationmaster.series.joining import IMPORTED, join_attempts, steps_of_readings
from stationmaster.series.run_series import Axis, DrawnSeries, RunSeries
from stationmaster.series.schema import TABLES, required_columns
from stationmaster.series.summary import RunSummary, summarise_run
from stationmaster.series.table import Table
from stationmaster.station.local.analyses import LocalAnalyses
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.jobs import LocalJobs
from stationmaster.station.local.recent_answers import RecentAnswers
from stationmaster.station.metrics import DEFAULT_COLUMNS, Contents, Imported, StoredTable
from stationmaster.station.run_files.exporting import Exported, export_run
from stationmaster.station.run_files.reading import read_run_file
from stationmaster.store.storable_text import is_storable

_MOST_REMEMBERED_POINTS = 25_000  # about 2 MB

_GPU_SERIES = re.compile(r"gpu\d+\.(\w+)")


class LocalMetrics:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._store = installation.store
        self._recent = RecentAnswers()

    def find(self, reference: str) -> str:
        if "/" not in reference:
            return LocalJobs(self._installation).find(reference).id
        if not is_storable(reference) or not self._store.series.contents(reference):
            raise NotFound(
                f"there is no file {reference}, and no values of a machine with that name",
                hint="`stationmaster monitor` stores what it shows, as PROVIDER/INSTANCE",
            )
        return reference

    def version(self, subject: str) -> str:
        seen = (self._store.series.version(subject), self._store.readings.count(subject))
        return hashlib.sha256(repr(seen).encode()).hexdigest()[:32]

    def contents(self, subject: str) -> Contents:
        return self._recent.get(("contents", subject), self.version(subject), lambda: self._contents(subject))

    def _contents(self, subject: str) -> Contents:
        stored = self._store.series.contents(subject)
        run = self._run(subject)
        return Contents(
            subject=subject,
            tables=tuple(
                StoredTable(
                    name=each.name,
                    attempt=each.attempt,
                    rows=each.row_count,
                    first_at=each.first_at,
                    last_at=each.last_at,
                    thinned=each.thinned,
                )
                for each in stored
            ),
            series=tuple(run.names()),
            from_log="StepMetric" in run.tables and not any(each.name == "StepMetric" for each in stored),
            dropped_rows=self._store.series.dropped_rows(subject),
        )

    def series(
        self,
        subject: str,
        names: Sequence[str] = (),
        *,
        axis: Axis = "step",
        start: float | None = None,
        end: float | None = None,
        columns: int = DEFAULT_COLUMNS,
    ) -> Sequence[DrawnSeries]:
        def draw() -> Sequence[DrawnSeries]:
            run = self._run(subject, _columns_for(names) if names else None)
            if run.missing(names):
                self._run(subject).require(names)
            return run.drawn(names, axis=axis, start=start, end=end, columns=columns)

        question = ("series", subject, tuple(names), axis, start, end, columns)
        return self._recent.get(question, self.version(subject), draw, is_small=_is_small)

    def summary(
        self, subject: str, *, axis: Axis = "step", start: float | None = None, end: float | None = None
    ) -> RunSummary:
        def summarise() -> RunSummary:
            return summarise_run(self._run(subject).within(axis=axis, start=start, end=end))

        return self._recent.get(("summary", subject, axis, start, end), self.version(subject), summarise)

    def rows(self, subject: str, table: str) -> Table:
        found = self._run(subject, {table: None}).tables if table in TABLES else {}
        if table not in found:
            raise NotFound(f"there are no rows of {table} of {subject}", hint=f"tables are {', '.join(TABLES)}")
        return found[table]

    def import_files(self, subject: str, path: Path) -> Imported:
        job = self._store.jobs.get(subject)
        found = read_run_file(path)
        blocks = [block for table in found.tables.values() for block in _blocks(table)]
        size, limit = sum(len(block.data) for block in blocks), self._installation.settings.metrics.cap_bytes
        if size > limit:
            raise UserError(
                f"the values of {path} take {size / 2**20:.0f} MiB, more than one job may have",
                hint="raise metrics.cap_bytes",
            )
        self._store.series.import_blocks(job.id, blocks)
        rows = sum(map(len, found.tables.values()))
        return Imported(kind=found.kind, rows=rows, series=tuple(RunSeries(found.tables).names()), notes=found.notes)

    def export(self, subject: str, path: Path, *, table: str | None = None) -> Exported:
        run = self._run(subject)
        if not run.tables:
            raise NotFound(f"nothing was measured of {subject}", hint="there is nothing to export yet")
        known = None if "/" in subject else self._store.jobs.get(subject)
        if known is None:
            return export_run(run.tables, path, job_id=subject, info={}, table=table)
        recipes = partial(find, folders=self._installation.settings.recipes)
        facts = known_at_home(known, self._store, recipes)
        analysis = LocalAnalyses(self._installation).stored(subject)
        return export_run(run.tables, path, job_id=subject, info=facts, table=table, analysis=analysis)

    def _run(self, subject: str, wanted: Mapping[str, Collection[str] | None] | None = None) -> RunSeries:
        """The tables of all attempts joined; of those in `wanted` only, with these columns (None: all of them)."""
        attempts: dict[int, list[Table]] = self._store.series.tables(subject) if wanted is None else {}
        for name, columns in (wanted or {}).items():
            for attempt, table in self._store.series.read(subject, name, columns=columns).items():
                attempts.setdefault(attempt, []).append(table)
        if wanted is None or "StepMetric" in wanted:
            self._add_readings(subject, attempts)
        return RunSeries(join_attempts(attempts))

    def _add_readings(self, subject: str, attempts: dict[int, list[Table]]) -> None:
        """Add what the log shows, for attempts whose steps were neither recorded nor imported."""
        recorded = {
            number for number, tables in attempts.items() if any(table.name == "StepMetric" for table in tables)
        }
        if IMPORTED in recorded:
            return
        readings = self._store.readings.of_job(subject, without_attempts=recorded)
        for attempt in {reading.attempt for reading in readings}:
            own = [reading for reading in readings if reading.attempt == attempt]
            attempts.setdefault(attempt, []).append(steps_of_readings(own))


def _columns_for(names: Sequence[str]) -> dict[str, Collection[str] | None]:
    """The tables and columns that series of these names come from; the steps' times, for a range of steps."""
    wanted: dict[str, set[str]] = {"StepMetric": set()}
    for name in names:
        gpu = _GPU_SERIES.fullmatch(name)
        column = gpu[1] if gpu else name.partition(".")[2] or name
        for table in ("GpuSample",) if gpu else ("StepMetric", "MetricsSample", "ResourceSample", "InstanceSample"):
            if column in TABLES[table]:
                wanted.setdefault(table, set()).add(column)
        wanted.setdefault("StepValue", {"value"})
    return {table: {*columns, *required_columns(table)} for table, columns in wanted.items()}


def _is_small(drawn: Sequence[DrawnSeries]) -> bool:
    return sum(len(series.points.x) for series in drawn) <= _MOST_REMEMBERED_POINTS


def _blocks(table: Table) -> list[Block]:
    return [block_of(part, attempt=IMPORTED) for part in table.parts(MOST_ROWS)]
