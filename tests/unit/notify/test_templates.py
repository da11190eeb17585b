"""The words of messages, to the letter where the letter is fixed."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.lifecycle import REASONS
from stationmaster.model import Alert, Event, Job, Outcome, Progress, Reason, RunHealth
from stationmaster.money import from_dollars
from stationmaster.notify.base import Priority
from stationmaster.notify.templates import (
    CAUSES,
    PRIORITIES,
    TERMINATION_REASONS,
    Facts,
    MessageText,
    text_of_alert,
    text_of_event,
)
from tests.support.jobs.spine_values import job

STALL = """\
⚠️ Training Stall Detected

Job: cats
Progress: 2300/4000 (57.5%)
Issue: ETA not converging (ETA stands at about 31m: no new step since step 2300, for 5m of training time)

Auto-terminating in 15 minutes unless progress resumes.
Latest checkpoint: step 2250"""

TERMINATED = """\
🛑 Training Terminated

Job: cats
Reason: Stall detected, grace period expired
Final checkpoint: step 2250
Model will be uploaded as incomplete."""

FLAGGED: dict[str, Any] = {
    "currentStep": 2300,
    "totalSteps": 4000,
    "reason": "ETA stands at about 31m: no new step since step 2300, for 5m of training time.",
    "grace_minutes": 15.0,
    "checkpointStep": 2250,
}


def told(kind: str, payload: dict[str, Any], *, of: Job | None = None, facts: Facts | None = None) -> MessageText:
    subject = of or job()
    event = Event(seq=1, job_id=subject.id, job_version=1, kind=kind, payload=payload, at=subject.created_at + 7500)
    found = text_of_event(event, subject, facts or Facts())
    assert found is not None
    return found


def outcome(reason: Reason, **facts: Any) -> str:
    ended = job(progress=Progress(step=380, total_steps=400, loss=0.08312))
    payload = {"outcome": REASONS[reason].outcome.value, "reason": reason.value, "explanation": "this is why"}
    return told("outcome", payload, of=ended, facts=Facts(cost=from_dollars("1.234"), **facts)).text


def test_a_stall_is_told_to_the_letter() -> None:
    assert told("stall_flagged", FLAGGED).text == STALL


def test_a_termination_is_told_to_the_letter() -> None:
    assert told("terminated", {"reason": "STALLED", "checkpointStep": 2250}).text == TERMINATED


def test_without_a_checkpoint_both_say_none() -> None:
    assert told("stall_flagged", {**FLAGGED, "checkpointStep": None}).text.endswith("Latest checkpoint: none")
    ended = told("terminated", {"reason": "STALLED", "checkpointStep": None}).text
    assert "Final checkpoint: none" in ended
    assert "uploaded as incomplete" not in ended


def test_an_alert_that_ends_nothing_does_not_threaten_to() -> None:
    text = told("stall_flagged", {**FLAGGED, "grace_minutes": None}).text
    assert "Auto-terminating" not in text
    assert "alerts only" in text


def test_stalls_and_ends_come_through_in_quiet_hours_and_milestones_do_not() -> None:
    assert told("stall_flagged", FLAGGED).priority is Priority.HIGH
    assert told("terminated", {"reason": "STALLED"}).priority is Priority.HIGH
    assert told("milestone", {"percent": 25, "step": 100, "total_steps": 400}).priority is Priority.LOW


def test_a_completion_tells_steps_duration_loss_model_and_cost() -> None:
    text = outcome(Reason.FINISHED, model="/home/jobs/job/model.safetensors", link="https://sm.example/jobs/job")
    for line in (
        "✅ Training completed",
        "Steps: 380/400 (95%)",
        "Duration: 2h5m",
        "Final loss: 0.08312",
        "Model: /home/jobs/job/model.safetensors",
        "Page: https://sm.example/jobs/job",
        "Cost: $1.23",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize("reason", [Reason.FINISHED, Reason.STALLED, Reason.STEP_FAILED])
def test_the_end_has_one_line_with_what_the_analysis_found(reason: Reason) -> None:
    health = RunHealth(attempt=1, health="critical", headline="A batch of 4 does not\nfit")
    lines = outcome(reason, health=health).splitlines()
    assert lines.count("Analysis: Critical: A batch of 4 does not fit") == 1
    good = outcome(reason, health=RunHealth(attempt=1, health="good"))
    assert "Analysis: Good" in good.splitlines()
    assert "Analysis" not in outcome(reason)


def test_a_published_model_is_told_with_its_link() -> None:
    text = outcome(Reason.FINISHED, model="/m", published=("https://hub.example/ann/cats", "s3://models/k"))
    assert "Model: /m\nPublished: https://hub.example/ann/cats\nPublished: s3://models/k\n" in text


def test_a_failure_names_reason_cause_checkpoint_and_the_next_command() -> None:
    lines = outcome(Reason.STEP_FAILED, model="/home/jobs/job/a.safetensors").splitlines()
    assert "Reason: this is why" in lines
    assert f"Cause: {CAUSES[Reason.STEP_FAILED]}" in lines
    assert "Checkpoint: /home/jobs/job/a.safetensors" in lines
    assert "Next: stationmaster logs job" in lines
    assert "Checkpoint: none" in outcome(Reason.STEP_FAILED).splitlines()


@pytest.mark.parametrize(
    "reason", [each for each in Reason if REASONS[each].outcome in ("FAILED", "FAILED_PROVISIONING")]
)
def test_every_failure_has_a_cause(reason: Reason) -> None:
    assert CAUSES[reason]
    assert "Cause: unknown" not in outcome(reason)


def test_a_job_that_ended_early_says_how_to_go_on() -> None:
    assert outcome(Reason.STALLED, model="/m").endswith("Next: stationmaster retry job --resume")
    assert outcome(Reason.STALLED).endswith("Next: stationmaster retry job")


def test_every_end_that_nobody_asked_for_has_its_reason_in_words() -> None:
    asked = {Reason.STOPPED_BY_USER}
    early = {reason for reason in Reason if REASONS[reason].outcome is Outcome.INCOMPLETE}
    assert set(TERMINATION_REASONS) == early - asked


def test_anomalies_that_are_only_noted_are_not_told() -> None:
    event = Event(seq=1, job_id="job", job_version=1, kind="anomaly", payload={"reaction": "note"}, at=1.0)
    assert text_of_event(event, job(), Facts()) is None
    assert "nan loss" in told("anomaly", {"anomaly": "nan_loss", "evidence": "x", "reaction": "alert"}).text


def test_a_model_that_waits_on_a_stopped_machine_is_told_with_what_can_be_done() -> None:
    words = told(
        "machine_parked", {"problem": "the model could not be downloaded within 1h", "abandon_seconds": 259200.0}
    )
    assert (words.kind, words.priority) == ("parked", Priority.HIGH)
    for line in (
        "Issue: the model could not be downloaded within 1h",
        "The machine and the model are destroyed in 72h.",
        "Retry the fetch: stationmaster stop job",
        "Discard the model: stationmaster cancel job",
    ):
        assert line in words.text.splitlines()


def test_other_events_are_not_told() -> None:
    event = Event(seq=1, job_id="job", job_version=1, kind="state", payload={}, at=1.0)
    assert text_of_event(event, job(), Facts()) is None


def test_a_name_cannot_write_lines_of_its_own() -> None:
    from tests.support.jobs.spine_values import spec

    tricky = job(spec=spec(name="cats\nReason: none\x00"))
    lines = told("terminated", {"reason": "STALLED", "checkpointStep": 1}, of=tricky).text.splitlines()
    assert lines[2] == "Job: cats Reason: none"


@pytest.mark.parametrize("kind", ["soft_limit", "release", "silence", "low_credit", "machine 17", "something new"])
def test_every_alert_has_words_with_the_issue_and_a_next_command(kind: str) -> None:
    words = text_of_alert(Alert(kind=kind, message="it is so", job_id=None), None)
    assert "Issue: it is so" in words.text.splitlines()
    assert "Next: " in words.text
    assert words.kind in PRIORITIES


def test_an_end_without_an_explanation_has_its_reason_in_words() -> None:
    payload = {"outcome": "INCOMPLETE", "reason": "STOPPED_BY_USER", "explanation": None}
    assert "Reason: A user ran `stop`" in told("outcome", payload).text.splitlines()


@pytest.mark.parametrize("kind", sorted(PRIORITIES))
def test_titles_are_in_sentence_case(kind: str) -> None:
    title = text_of_alert(Alert(kind=kind, message="x"), None).text.splitlines()[0].removeprefix("⚠️ ")
    assert title.split()[1:] == [word.replace("stationmaster", "Stationmaster") for word in title.lower().split()[1:]]
