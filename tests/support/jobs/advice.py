"""Analyses with the recommendations that a test needs."""

from __future__ import annotations

from typing import Any

from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Health, Recommendation, Report, Severity, Summary


def advice(
    lever: Lever,
    value: Any,
    *,
    path: str | None = None,
    severity: Severity = Severity.CRITICAL,
    current: Any = None,
    title: str = "Change it",
) -> Recommendation:
    """One recommendation; its path is the parameter of the lever's name, or the lever itself outside the config."""
    where = lever.value if lever.is_outside else f"parameters.{lever.value}"
    return Recommendation(
        rule="a_rule",
        severity=severity,
        lever=lever,
        title=title,
        action="Do it.",
        impact="It passes.",
        config_path=where if path is None else path,
        current_value=current,
        recommended_value=value,
    )


def report_with(*recommendations: Recommendation, job_id: str = "old") -> Report:
    summary = Summary(
        health_score=Health.CRITICAL,
        peak_memory_gb=23.0,
        total_memory_gb=24.0,
        training_completed=False,
        steps_completed=10,
        duration_minutes=1.0,
    )
    return Report(job_id=job_id, summary=summary, recommendations=recommendations, log_errors=())
