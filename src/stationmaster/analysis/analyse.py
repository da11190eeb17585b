"""The analysis of one run: facts, rules, ranking, report."""

from __future__ import annotations

from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.log_errors import log_errors_of
from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.analysis.report import Health, Recommendation, Report, Severity, Summary
from stationmaster.analysis.rules.base import Finding
from stationmaster.analysis.rules.registry import FAMILIES
from stationmaster.analysis.timeline import timeline_of


def analyse(run: RecordedRun) -> Report:
    """Judge a run by its rows, its log and its config."""
    facts = RunFacts(run)
    findings = [finding for family in FAMILIES for finding in family(facts)]
    recommendations = ranked(findings)
    return Report(
        job_id=run.job_id,
        summary=_summary(facts, recommendations),
        recommendations=recommendations,
        log_errors=log_errors_of(facts),
        timeline=timeline_of(facts),
        notes=_notes(facts),
    )


def ranked(findings: list[Finding]) -> tuple[Recommendation, ...]:
    """Return the recommendations by rank; of several for one setting only the first stays, so none contradict."""
    kept: dict[str, Recommendation] = {}
    for finding in sorted(findings, key=lambda finding: finding.order):
        kept.setdefault(finding.recommendation.config_path, finding.recommendation)
    return tuple(kept.values())


def _summary(facts: RunFacts, recommendations: tuple[Recommendation, ...]) -> Summary:
    pool, duration = facts.summary_pool, facts.duration_seconds
    return Summary(
        health_score=_health(facts, recommendations),
        peak_memory_gb=None if pool is None else round(pool.peak.used_gb, 3),
        total_memory_gb=None if pool is None else round(pool.size_gb, 3),
        training_completed=facts.ending.completed,
        steps_completed=facts.steps_completed,
        duration_minutes=None if duration is None else round(duration / 60, 2),
        memory_pool=None if pool is None else pool.name,
        total_steps=facts.total_steps,
    )


def _health(facts: RunFacts, recommendations: tuple[Recommendation, ...]) -> Health:
    if facts.row_times is None and not facts.run.log.strip() and facts.ending.exit_code is None:
        return Health.UNKNOWN
    share = facts.share or 0.0
    if facts.had_oom or share >= facts.thresholds.critical or facts.ending.failed or facts.is_spoilt:
        return Health.CRITICAL
    serious = any(each.severity is not Severity.INFO for each in recommendations)
    return Health.WARNING if serious or share >= facts.thresholds.warning else Health.GOOD


def _notes(facts: RunFacts) -> tuple[str, ...]:
    notes = []
    if facts.config is None:
        notes.append("there is no config of the trainer, so advice does not know what is set already")
    if not facts.run.log.strip():
        notes.append("there is no log")
    if not facts.pools:
        notes.append("no memory was measured")
    return tuple(notes)
