"""Every event that the source writes can be shown to a person as a sentence, whatever its payload holds."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stationmaster
from stationmaster.event_sentences import SENTENCES, sentence
from stationmaster.model import Request, State
from stationmaster.printable import one_line
from stationmaster.watch.escalation import CLEARED, FLAGGED, TERMINATE

SOURCE = Path(str(stationmaster.__file__)).parent
OLD_EVENT = re.compile(r"""INSERT INTO "events" VALUES\(\d+,'[^']*',\d+,'([a-z_]+)','((?:[^']|'')*)'""")
OLD_HOMES = sorted((Path(__file__).parents[2] / "fixtures" / "old_homes").glob("*/sqlite.sql"))

CHOSEN_ELSEWHERE = (
    {"data_pulled", "data_already_there"},  # how the dataset came to the machine
    {f"{request.value}_ended" for request in Request},
    {FLAGGED, CLEARED, TERMINATE},
    {"rental_gone", "machine_left"},  # whose the machine was
)
"""The kinds of each call whose kind is no literal."""


def event_kinds() -> list[str | None]:
    """The kind of every event that the source writes; None where it is no literal."""
    calls = [
        {word.arg: word.value for word in node.keywords}
        for folder in ("control", "store")
        for path in (SOURCE / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    kinds = [given["kind"] for given in calls if {"kind", "payload"} <= given.keys()]
    return [str(kind.value) if isinstance(kind, ast.Constant) else None for kind in kinds]


def test_every_kind_that_the_source_writes_has_its_sentence_and_no_other_has_one() -> None:
    found = event_kinds()
    literal = {kind for kind in found if kind is not None}
    assert found.count(None) == len(CHOSEN_ELSEWHERE)
    assert literal | set[str]().union(*CHOSEN_ELSEWHERE) == SENTENCES.keys()


def test_the_kinds_chosen_elsewhere_are_in_the_source() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCE.glob("control/**/*.py"))
    assert all(f'"{kind}"' in text for kind in CHOSEN_ELSEWHERE[0])


def test_the_events_of_old_homes_have_sentences() -> None:
    rows = [row for home in OLD_HOMES for row in OLD_EVENT.findall(home.read_text(encoding="utf-8"))]
    assert len({kind for kind, _ in rows}) > 20
    for kind, payload in rows:
        assert kind in SENTENCES
        assert "None" not in sentence(kind, json.loads(payload.replace("''", "'")))


@pytest.mark.parametrize(
    ("kind", "payload", "shown"),
    [
        (
            "submitted",
            {"name": "cats", "recipe": "tiny-lora@1", "provider": "vastai"},
            "Submitted cats: tiny-lora@1 on vastai.",
        ),
        (
            "rental_held",
            {"label": "sm-1", "provider_id": "30007012", "gpu": "RTX 4090", "region": "SE", "price_per_hour_usd": 0.31},
            "Rented an RTX 4090 in SE for $0.31/h (instance 30007012).",
        ),
        ("rental_held", {"provider": "loopback", "gpu": "H200"}, "Has an H200 of this computer."),
        ("rental_held", {"label": "sm-1", "provider_id": "30007012"}, "Rented a machine (instance 30007012)."),
        (
            "step",
            {"step": "train", "state": "failed", "try": 2, "exit_code": 1, "tries": 2},
            "Step train failed with exit code 1 on try 2 of 2.",
        ),
        (
            "step",
            {"step": "train", "state": "failed", "try": 1, "exit_code": None},
            "Step train failed; its exit code is unknown.",
        ),
        ("step", {"step": "train", "state": "running", "try": 1, "exit_code": None, "tries": 2}, "Step train started."),
        (
            "state",
            {"from": "QUEUED", "to": "PROVISIONING", "attempt": 2},
            "Now PROVISIONING: getting a machine for attempt 2.",
        ),
        ("state", {"from": "X", "to": "A_NEW_STATE"}, "Now A_NEW_STATE."),
        (
            "state",
            {"from": "TRANSFERRING_DATA", "to": "EXECUTING", "attempt": 1, "adopted": True},
            "Now EXECUTING: watching the training.",
        ),
        (
            "outcome",
            {"outcome": "FAILED", "reason": "STEP_FAILED", "explanation": "train: exit code 1"},
            "The job ended as FAILED (step failed): train: exit code 1.",
        ),
        ("outcome", {"outcome": "COMPLETED", "reason": "FINISHED", "explanation": None}, "The job ended as COMPLETED."),
        (
            "milestone",
            {"percent": 25, "step": 100, "total_steps": 400, "loss": 0.12345, "eta_seconds": 7200.0},
            "Reached 25%: step 100/400, loss 0.1235, about 2h left.",
        ),
        (
            "stall_flagged",
            {"currentStep": 230, "totalSteps": 400, "reason": "The ETA does not fall.", "grace_minutes": 15.0},
            "Stall detected at step 230/400: The ETA does not fall. "
            "The training is stopped in 15 minutes unless progress resumes.",
        ),
        (
            "stall_flagged",
            {"currentStep": 230, "totalSteps": 400, "reason": "The ETA does not fall.", "graceMinutes": 15.0},
            "Stall detected at step 230/400: The ETA does not fall. "
            "The training is stopped in 15 minutes unless progress resumes.",
        ),
        (
            "delivery_failed",
            {"place": "hub", "problem": "HTTP 403"},
            "Could not upload the model to the Hub: HTTP 403.",
        ),
        ("save_ended", {"state": "timed_out", "files": []}, "The training saved no checkpoint (timed out)."),
        ("of_newer_code", {"answer": 42, "nothing": None}, "Of newer code: answer 42."),
    ],
)
def test_an_event_is_a_sentence_with_its_numbers(kind: str, payload: dict[str, Any], shown: str) -> None:
    assert sentence(kind, payload) == shown


def test_text_from_a_machine_stays_on_its_line_and_cannot_steer_a_terminal() -> None:
    shown = sentence("unreachable", {"problem": "a\x1b[31m\r\nb\u202e\u2028c\ud800"})
    assert shown == "The machine does not answer: a b c."


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = sorted(set(re.findall(r'"([a-zA-Z_]+)"', (SOURCE / "event_sentences.py").read_text(encoding="utf-8"))))
STATES = st.sampled_from([*State, "failed", "running", "saved"])


@given(
    st.sampled_from(sorted(SENTENCES)) | st.text(), st.dictionaries(st.sampled_from(KEYS) | st.text(), JSON | STATES)
)
def test_any_payload_gives_one_line_that_is_safe_to_print(kind: str, payload: dict[str, Any]) -> None:
    shown = sentence(kind, payload)
    assert shown
    assert shown == one_line(shown)
    assert "  " not in shown


@given(st.dictionaries(st.sampled_from(KEYS), st.just(10**400) | st.just(float("nan")) | st.just(-(10**400))))
def test_numbers_beyond_all_bounds_do_no_harm(payload: dict[str, Any]) -> None:
    for kind in SENTENCES:
        assert sentence(kind, payload)
