"""The analysis of one run."""

from __future__ import annotations

from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.analysis.report import Health, Report, Summary


def analyse(run: RecordedRun) -> Report:
    """Judge a run by its rows, its log and its config."""
    summary = Summary(
        health_score=Health.UNKNOWN,
        peak_memory_gb=None,
        total_memory_gb=None,
        training_completed=False,
        steps_completed=None,
        duration_minutes=None,
    )
    return Report(job_id=run.job_id, summary=summary, recommendations=(), log_errors=())
