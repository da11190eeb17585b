"""What a person asks of a running training: when it is passed on, and when it is answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.states.executing.user_requests import Ask, after_look, more_to_come, next_request
from stationmaster.model import Job, PendingRequest, Progress, Request, Requests, State
from stationmaster.remote.host import RequestState
from tests.support.jobs.spine_values import job

SAMPLING, SAMPLED = RequestState(state="sampling"), RequestState(state="sampled", files=("output/a.png",))

ASKING = PendingRequest(request=Request.SAMPLE, number=1, at=90.0, looked_at=99.0, attempt=1)


def training(*, step: int | None = 10, **fields: Any) -> Job:
    return job(state=State.EXECUTING, progress=Progress(step=step), attempt=1, **fields)


def test_nothing_is_passed_on_before_the_first_step_or_where_nothing_is_asked() -> None:
    assert next_request(training(), now=100.0) is None
    assert next_request(training(step=None, saves_asked=1), now=100.0) is None
    assert next_request(training(step=0, samples_asked=1), now=100.0) is None


@pytest.mark.parametrize("asked", [1, 3])
def test_the_latest_wish_is_passed_on_once(asked: int) -> None:
    assert next_request(training(samples_asked=asked), now=100.0) == Ask(request=Request.SAMPLE, number=asked)
    answered = Requests(answered={"sample": asked})
    assert next_request(training(samples_asked=asked, requests=answered), now=100.0) is None
    assert next_request(training(samples_asked=asked + 1, requests=answered), now=100.0) is not None


def test_one_that_is_being_waited_for_is_looked_at_now_and_then() -> None:
    waiting = training(samples_asked=1, saves_asked=1, requests=Requests(pending=ASKING))
    assert next_request(waiting, now=100.0) is None
    assert next_request(waiting, now=103.0) == Ask(request=Request.SAMPLE, number=1)


def test_one_that_was_lost_with_its_machine_is_made_again() -> None:
    lost = Requests(pending=replace(ASKING, attempt=0))
    assert next_request(training(samples_asked=1, requests=lost), now=99.5) is not None


def test_samples_are_all_there_once_the_training_more_to_come() -> None:
    pending = ASKING
    for found, step in ((SAMPLING, 10), (SAMPLING, 10), (SAMPLED, 10), (SAMPLED, 10)):
        assert more_to_come(found, pending, step=step), "the last picture may still be on its way"
        pending = after_look(pending, found, step=step)
    assert not more_to_come(SAMPLED, pending, step=11)


@pytest.mark.parametrize("state", ["saved", "timed_out", "not_running", "refused", "impossible", "nonsense"])
def test_any_other_answer_ends_it(state: str) -> None:
    assert not more_to_come(RequestState(state=state), ASKING, step=10)
