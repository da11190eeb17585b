"""The series of a job or of a watched machine: what was measured, reduced to a chart, in numbers, imported, exported.

A subject is a job's id, or `<provider>/<instance id>` for a machine that `monitor` watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stationmaster.series.run_series import Axis, DrawnSeries
from stationmaster.series.summary import GpuSummary, RunSummary, SeriesSummary
from stationmaster.series.table import Table
from stationmaster.station.run_files.exporting import Exported

__all__ = [
    "Axis",
    "Contents",
    "DrawnSeries",
    "Exported",
    "GpuSummary",
    "Imported",
    "Metrics",
    "RunSummary",
    "SeriesSummary",
    "StoredTable",
]

DEFAULT_COLUMNS = 1000
"""How many columns of pixels a chart has, unless its face knows better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """One table of one attempt; attempt 0 is what was imported."""

    name: str
    attempt: int
    rows: int
    first_at: float | None
    last_at: float | None
    thinned: bool  # only lowest and highest values are left


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What there is of a subject. `from_log`: the steps are those that the log shows, not recorded ones."""

    subject: str
    tables: tuple[StoredTable, ...]
    series: tuple[str, ...]
    from_log: bool
    dropped_rows: int  # beyond the limit of one job


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was stored of a file."""

    kind: str  # the file's format, in words
    rows: int
    series: tuple[str, ...]
    notes: tuple[str, ...]


class Metrics(Protocol):
    def find(self, reference: str) -> str:
        """The subject with this name: a job by id, beginning of its id or name, or a machine. Raises NotFound."""

    def version(self, subject: str) -> str:
        """A text that changes whenever something was measured or imported: cheap, for those who ask often."""

    def contents(self, subject: str) -> Contents:
        """The tables and series that there are; both are empty where nothing was measured."""

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
        """These series, or all, with at most two points per column; exact where there are no more points than that.

        `start` and `end` are steps or, if that is the axis, seconds since 1970. Raises NotFound for a name that the
        subject does not have.
        """

    def summary(
        self, subject: str, *, axis: Axis = "step", start: float | None = None, end: float | None = None
    ) -> RunSummary:
        """The numbers of all series, within the range if one is given."""

    def rows(self, subject: str, table: str) -> Table:
        """All rows of one table, of all attempts. Raises NotFound for a table without rows."""

    def import_files(self, subject: str, path: Path) -> Imported:
        """Store the series of a file with the job, in place of those imported before. Raises NotFound, UserError."""

    def export(self, subject: str, path: Path, *, table: str | None = None) -> Exported:
        """Write everything, or one table, in the format of the file's suffix. Raises NotFound, UserError."""
