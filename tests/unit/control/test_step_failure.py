"""A failed step is explained by the error that its log tells, in one line that is fit to be shown."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import outcome_event
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.control.states.executing.step_failure import failure_explanation
from stationmaster.lifecycle import concluded
from stationmaster.model import Event, Job, Reason, State
from stationmaster.notify.templates import Facts, text_of_event
from stationmaster.parsers.quotes import quoted
from stationmaster.remote.status import Finished, LogPiece, Status, StepStatus, Supervisor
from tests.support.jobs.spine_values import MACHINE, job, visit

ASSERTION = "AssertionError: max_train_steps should be greater than initial step"
TRACEBACK = f'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    main()\n{ASSERTION}\n'


def step(name: str = "train", **changes: Any) -> StepStatus:
    fields: dict[str, Any] = {"index": 1, "state": "failed", "try_number": 1, "exit_code": 1, "failure": "exit"}
    return StepStatus(name=name, training=name == "train", started_at=1.0, **{**fields, **changes})


def failed(*steps: StepStatus, log: tuple[LogPiece, ...] = (), ended: bool = True) -> Status:
    return Status(
        wall=10.0,
        monotonic=10.0,
        boot_id="b",
        started=True,
        supervisor=Supervisor(alive=not ended),
        steps=steps,
        finished=Finished(result="failed", step=steps[-1].name, exit_code=1, at=2.0) if ended else None,
        log=log,
    )


def piece(text: str, stream: str = "1.1") -> LogPiece:
    return LogPiece(stream=stream, inode=1, start=0, end=len(text), data=text.encode())


def at_work() -> Job:
    return job(state=State.EXECUTING, state_since=0.0, machine=MACHINE)


def looked_at(before: Job, status: Status) -> Job:
    step = executing.decide(ExecutingView(visit=visit(before, now=100.0), status=status), Policy())
    assert step.write is not None
    return step.write.job


def explained(*steps: StepStatus, read: tuple[LogPiece, ...] = ()) -> str:
    """The explanation that a job is left with, after its log was read and its end was seen."""
    running = looked_at(at_work(), failed(*steps, log=read))
    after = running if not read else looked_at(running, failed(*steps))
    assert (after.state, after.ending.reason) == (State.FETCHING_RESULTS, Reason.STEP_FAILED)
    return str(after.ending.explanation)


def test_the_machine_s_own_judgement_is_quoted() -> None:
    said = explained(step(error=ASSERTION, cannot_pass=True))
    assert said == f"step train failed with exit code 1 (try 1): {ASSERTION}; not retried, it would fail again"


def test_an_older_trackside_leaves_the_quote_to_the_log_reader() -> None:
    said = explained(step(try_number=2), read=(piece("loading\n" + TRACEBACK),))
    assert said == f"step train failed with exit code 1 (try 2): {ASSERTION}"


def test_without_any_error_the_log_is_named() -> None:
    said = explained(step(exit_code=3), read=(piece("working\n"),))
    assert said == "step train failed with exit code 3 (try 1); see its log"


def test_an_error_of_another_step_is_not_quoted() -> None:
    said = explained(step(), read=(piece(TRACEBACK, stream="0.1"), piece("working\n")))
    assert said == "step train failed with exit code 1 (try 1); see its log"


def test_an_error_that_the_training_outlived_does_not_explain_its_missing_files() -> None:
    outlived = TRACEBACK + "".join(f"step {n}/100 loss: 0.{n}\n" for n in range(10, 30))
    said = explained(step(failure="missing_output", exit_code=0), read=(piece(outlived),))
    assert said == "step train did not create its expected files (try 1); see its log"


def test_the_step_that_ended_the_plan_is_explained_and_not_one_that_may_fail() -> None:
    optional = step("samples", index=0, error="KeyError: 'x'")
    assert explained(optional, step("upload", error="OSError: y")).startswith("step upload failed")


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({"failure": "timeout", "signal": 15}, "exceeded its timeout"),
        (
            {"failure": "could_not_start", "error": "could not start x"},
            "could not be started (try 1): could not start x",
        ),
        ({"exit_code": None, "signal": 9}, "was killed by SIGKILL"),
        ({"exit_code": None, "signal": 250}, "was killed by signal 250"),
    ],
)
def test_how_it_ended_is_told(changes: dict[str, Any], how: str) -> None:
    assert failure_explanation(at_work(), failed(step(**changes))).startswith(f"step train {how}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("KeyError: 'a'\n❌ Paid\r\x1b[2Jx", "KeyError: 'a' ❌ Paid x"),
        ("left\u202eturned\x00", "left turned"),
        ("token hf_AbCdEfGhIjKlMnOp is wrong", "token … is wrong"),
        ("401 for https://me:secret@host.example/a/b?X-Amz-Signature=abc&y=1", "401 for https://host.example/a/b?…"),
        ("header Authorization: Bearer abc.def", "header Authorization: Bearer …"),
        ("task-12345678 failed", "task-12345678 failed"),
    ],
)
def test_a_quote_is_fit_to_be_shown(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_a_quote_is_short() -> None:
    assert (len(quoted("x" * 100_000)), quoted("x" * 100_000)[-1]) == (300, "…")


def test_the_message_to_people_quotes_it() -> None:
    said = explained(step(error=ASSERTION, cannot_pass=True))
    ended = concluded(at_work(), Reason.STEP_FAILED, explanation=said)
    told = outcome_event(ended)
    event = Event(seq=1, job_id=ended.id, job_version=7, at=100.0, kind=told.kind, payload=told.payload)
    message = text_of_event(event, ended, Facts())
    assert message is not None
    assert f"Reason: {said}" in message.text.splitlines()
