"""The tracker for accelerate, in real trainings."""

from __future__ import annotations

import pytest

from tests.integrations.trainings import Place, seconds_of

pytestmark = pytest.mark.framework("accelerate", "torch")

SLEEP_SECONDS = 0.005  # in each batch


def test_every_logged_step_is_a_row_with_its_loss_and_time(place: Place) -> None:
    printed = place.train("accelerate", steps=12).printed
    steps = place.steps()
    assert [step.step for step in steps] == list(range(1, 13))
    assert [step.loss for step in steps] == printed["losses"]
    assert {step.learning_rate for step in steps} == {0.05}
    assert steps[0].step_time_seconds is None  # nothing tells when it began
    assert all((step.step_time_seconds or 0) >= SLEEP_SECONDS for step in steps[1:])
    assert seconds_of(steps[1:]) <= printed["seconds"]
    assert place.values("norm") == {step: step / 2 for step in range(1, 13)}
    assert place.values("lr/text")[7] == 0.01
    # The script logs an epoch with the epoch's number.
    assert place.values("loss/epoch_average").keys() == {12}
    assert place.event_names() == ["training_start", "training_end"]
    assert place.events()[1][1]["config"] == {"learning_rate": 0.05, "optimizer": "SGD"}
    assert place.facts()["framework"] == "accelerate"


def test_accumulated_batches_are_one_step(place: Place) -> None:
    place.train("accelerate", steps=6, accumulate=2)
    steps = place.steps()
    assert [step.step for step in steps] == [1, 2, 3, 4, 5, 6]
    assert all((step.step_time_seconds or 0) >= 2 * SLEEP_SECONDS for step in steps[1:])


def test_a_resumed_training_continues_its_numbers(place: Place) -> None:
    place.train("accelerate", steps=5)
    place.train("accelerate", first=5, steps=8)
    assert [step.step for step in place.steps()] == list(range(1, 9))


def test_no_step_is_lost_when_the_training_is_killed(place: Place) -> None:
    killed = place.train("accelerate", steps=1000, kill_at=200)
    assert killed.exit_code == -9
    place.replay()
    assert [step.step for step in place.steps()] == list(range(1, 201))


def test_running_out_of_memory_is_an_event_before_the_end(place: Place) -> None:
    failed = place.train("accelerate", fail_at=4)
    assert failed.exit_code == 1
    assert place.event_names() == ["training_start", "oom_error", "training_end"]
    assert place.events()[1][1]["step"] == 3


def test_of_two_processes_the_first_records_the_steps(place: Place) -> None:
    printed = place.train("accelerate", steps=4, processes=2).printed
    assert [step.step for step in place.steps()] == [1, 2, 3, 4]
    assert [step.loss for step in place.steps()] == printed["losses"]
    assert place.event_names() == ["training_start", "training_end"]
