"""The analysis of a run: what went wrong or was wasted, and what to change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from stationmaster.analysis.analyse import analyse
from stationmaster.analysis.report import Report
from stationmaster.station.run_files.recorded_run import read_recorded_run

__all__ = ["Analyses", "Analysis", "Report", "analyse_file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analysis of a job's attempt. `is_stored` is false for one of a training that has not ended yet."""

    report: Report
    attempt: int
    created_at: float
    is_stored: bool = True


class Analyses(Protocol):
    def of_job(self, job_id: str, *, again: bool = False, with_offers: bool = False) -> Analysis:
        """The stored analysis of the job's last attempt; a new one where there is none, or if `again`.

        A running job is analysed as it is now, and nothing is stored. `with_offers` compares its machine with what can
        be rented now. Raises NotFound, also for a job that has not trained.
        """

    def stored(self, job_id: str) -> Analysis | None:
        """The stored analysis of the job's last attempt that trained, if there is one."""


def analyse_file(
    path: Path,
    *,
    job: str | None = None,
    log: Path | None = None,
    config: Path | None = None,
    now: float | None = None,
) -> Report:
    """Analyse a run's database, or the one in a folder, without an installation. With `now` it may still run.

    Log and config are by default those beside it. Raises NotFound, UserError.
    """
    found = read_recorded_run(path, job=job, log=log, config=config, now=now)
    report = analyse(found.run)
    return replace(report, notes=(*found.notes, *report.notes))
