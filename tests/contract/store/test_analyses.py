"""The analysis of a training is stored with the write that records it, once per attempt, and leaves with its job."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import (
    Confidence,
    Evidence,
    Health,
    LogError,
    Recommendation,
    Report,
    Severity,
    Summary,
)
from stationmaster.model import Outcome, Reason, State
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent, Write, can_join
from tests.support.jobs.spine_values import spec

REPORT = Report(
    job_id="a",
    summary=Summary(
        health_score=Health.CRITICAL,
        peak_memory_gb=119.5,
        total_memory_gb=120.0,
        training_completed=False,
        steps_completed=281,
        duration_minutes=27.5,
        memory_pool="system",
        total_steps=1000,
    ),
    recommendations=(
        Recommendation(
            rule="workers",
            severity=Severity.CRITICAL,
            lever=Lever.WORKERS,
            title="Worker processes held 60 GB \u0000 \ud800",
            action="Load data in the training process.",
            impact="Frees 60 GB.",
            config_path="datasets[0].num_workers",
            current_value=4,
            recommended_value=0,
            evidence=(Evidence(what="memory of workers", value=60.25, unit="GB", threshold=24.0),),
            basis="measured",
            confidence=Confidence.HIGH,
        ),
    ),
    log_errors=(
        LogError(
            timestamp=1.5, level="ERROR", message="out of memory", memory_at_time_gb=119.0, kind="oom", traceback="a\nb"
        ),
    ),
    timeline=({"timestamp": 1.0, "memory_gb": 3.5},),
    notes=("there is no config",),
)


def written(store: Store, job_id: str, report: Report, *, attempt: int = 1) -> None:
    """Store a report as a worker does."""
    store.jobs.submit(spec(job_id))
    leases = store.leases.claim("w", limit=10, seconds=20)
    lease = next(lease for lease in leases if lease.job.id == job_id)
    event = NewEvent(kind="analysed", payload={"health": report.health.value})
    store.leases.record(lease, Write(job=replace(lease.job, attempt=attempt), analysis=report, events=(event,)))


def test_a_report_is_stored_with_its_event_and_read_back_whole(store: Store) -> None:
    written(store, "a", REPORT)
    found = store.analyses.of_job("a")
    assert found is not None
    assert found.attempt == 1
    assert abs(found.created_at - store.now()) < 60
    assert found.report == REPORT
    assert [event.kind for event in store.events.of_job("a")] == ["submitted", "analysed"]
    assert store.analyses.of_job("b") is None


def test_the_latest_attempt_counts_and_earlier_ones_stay(store: Store) -> None:
    better = replace(REPORT, summary=replace(REPORT.summary, health_score=Health.GOOD), recommendations=())
    written(store, "a", REPORT)
    assert store.analyses.put("a", 2, better)
    found, first = store.analyses.of_job("a"), store.analyses.of_job("a", attempt=1)
    assert found is not None
    assert first is not None
    assert (found.attempt, found.report.health, first.report.health) == (2, Health.GOOD, Health.CRITICAL)
    verdict = store.analyses.health_of(["a", "none"])
    assert verdict.keys() == {"a"}
    assert (verdict["a"].attempt, verdict["a"].health, verdict["a"].headline) == (2, "good", None)


def test_a_second_report_of_an_attempt_replaces_the_first(store: Store) -> None:
    written(store, "a", REPORT)
    assert store.analyses.put("a", 1, replace(REPORT, notes=("again",)))
    found = store.analyses.of_job("a")
    assert found is not None
    assert found.report.notes == ("again",)
    headline = store.analyses.health_of(["a"])["a"].headline
    assert headline is not None
    assert headline.startswith("Worker processes held 60 GB")


def test_a_report_of_a_removed_job_is_not_stored_and_a_job_takes_its_reports_with_it(store: Store) -> None:
    assert not store.analyses.put("gone", 1, REPORT)
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    done = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    store.leases.record(lease, Write(job=done, due_in=None, analysis=REPORT))
    store.jobs.remove("a")
    assert store.analyses.of_job("a") is None


def test_reports_leave_with_the_measured_values(store: Store) -> None:
    written(store, "running", REPORT)
    store.jobs.submit(spec("ended"))
    (lease,) = store.leases.claim("w2", limit=1, seconds=20)
    done = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    store.leases.record(lease, Write(job=done, due_in=None, analysis=REPORT))
    assert store.analyses.clear_old(ended_before=store.now() - 3600) == 0
    assert store.analyses.clear_old(ended_before=store.now() + 3600) == 1
    assert store.analyses.health_of(["running", "ended"]).keys() == {"running"}


def test_numbers_that_are_not_finite_are_stored_as_none(store: Store) -> None:
    odd = replace(REPORT, summary=replace(REPORT.summary, peak_memory_gb=float("nan")))
    written(store, "a", odd)
    found = store.analyses.of_job("a")
    assert found is not None
    assert found.report.summary.peak_memory_gb is None


def test_what_newer_code_wrote_is_left_out(store: Store) -> None:
    from stationmaster.analysis.stored_report import report_from_json

    data = REPORT.as_json()
    data["recommendations"].append({**data["recommendations"][0], "lever": "unheard_of"})
    data["log_errors"].append("text")
    data["new"] = 1
    assert report_from_json(data) == REPORT
    assert report_from_json({}).health is Health.UNKNOWN


def test_a_write_with_a_report_is_not_joined_with_others(store: Store) -> None:
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    assert not can_join(Write(job=lease.job), Write(job=lease.job, analysis=REPORT))


def test_lost_machines_are_counted_against_the_hours_that_machines_were_held(store: Store) -> None:
    assert store.runs.lost_machines() == (0, 0.0)
    for job_id, reason, failed in (("lost", None, 2), ("cancelled", Reason.CANCELLED_BY_USER, 1)):
        store.jobs.submit(spec(job_id))
        (lease,) = store.leases.claim(job_id, limit=1, seconds=20)
        store.leases.record(lease, Write(job=replace(lease.job, failed_after_login=failed, reason=reason)))
    assert store.runs.lost_machines() == (2, 0.0)
