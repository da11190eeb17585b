"""The series of a user's own jobs; those of watched machines are for administrators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stationmaster.errors import Forbidden
from stationmaster.model import Caller, Right
from stationmaster.series.table import Table
from stationmaster.station.jobs import Jobs
from stationmaster.station.metrics import (
    DEFAULT_COLUMNS,
    Axis,
    Contents,
    DrawnSeries,
    Exported,
    Imported,
    Metrics,
    RunSummary,
)
from stationmaster.station.owned.rights import own_job, require


class OwnedMetrics:
    def __init__(self, caller: Caller, metrics: Metrics, jobs: Jobs) -> None:
        self._caller = caller
        self._all = metrics
        self._jobs = jobs

    def find(self, reference: str) -> str:
        """By the whole id only; a route asks the caller's own jobs for anything shorter."""
        return self._own(reference)

    def version(self, subject: str) -> str:
        return self._all.version(self._own(subject))

    def contents(self, subject: str) -> Contents:
        return self._all.contents(self._own(subject))

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
        return self._all.series(self._own(subject), names, axis=axis, start=start, end=end, columns=columns)

    def summary(
        self, subject: str, *, axis: Axis = "step", start: float | None = None, end: float | None = None
    ) -> RunSummary:
        return self._all.summary(self._own(subject), axis=axis, start=start, end=end)

    def rows(self, subject: str, table: str) -> Table:
        return self._all.rows(self._own(subject), table)

    def import_files(self, subject: str, path: Path) -> Imported:
        require(self._caller, Right.TRAIN)
        return self._all.import_files(self._own(subject), path)

    def export(self, subject: str, path: Path, *, table: str | None = None) -> Exported:
        return self._all.export(self._own(subject), path, table=table)

    def _own(self, subject: str) -> str:
        if "/" in subject:
            raise Forbidden("only administrators may see machines", hint="ask for the series of one of your jobs")
        return own_job(self._caller, self._jobs, subject).id
