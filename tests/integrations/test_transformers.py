"""The callback for the Trainer of transformers, in real trainings."""

from __future__ import annotations

import pytest

from tests.integrations.trainings import Place, seconds_of

pytestmark = pytest.mark.framework("transformers", "torch")

SLEEP_SECONDS = 0.005  # in each batch
SAVE_SECONDS = 0.2


def test_every_step_has_the_loss_that_the_trainer_logged_and_its_own_time(place: Place) -> None:
    printed = place.train("transformers", steps=12).printed
    steps, logged = place.steps(), [entry for entry in printed["logged"] if "loss" in entry]
    assert [step.step for step in steps] == list(range(1, 13)) == [entry["step"] for entry in logged]
    assert [step.loss for step in steps] == [entry["loss"] for entry in logged]
    assert [step.gradient_norm for step in steps] == [entry["grad_norm"] for entry in logged]
    assert [step.learning_rate for step in steps] == pytest.approx([0.1 * (1 - step / 12) for step in range(12)])
    assert {step.batch_size for step in steps} == {2}
    assert all((step.step_time_seconds or 0) >= SLEEP_SECONDS for step in steps)
    assert seconds_of(steps) <= printed["seconds"]
    assert place.values("epoch") == {entry["step"]: entry["epoch"] for entry in printed["logged"]}
    assert place.values("train_loss")[12] == printed["logged"][-1]["train_loss"]
    assert place.event_names() == ["training_start", "training_end"]
    facts = place.facts()
    assert (facts["framework"], facts["total_steps"], facts["loss_every_steps"]) == ("transformers", "12", "1")
    assert facts["context_tokens"] == "64", "what the script gave"
    assert {"python_version", "torch_version", "transformers_version"} <= facts.keys()


def test_steps_whose_loss_is_not_logged_have_a_row_with_their_own_time(place: Place) -> None:
    printed = place.train("transformers", steps=12, arguments={"logging_steps": 5}).printed
    steps = place.steps()
    assert [step.step for step in steps] == list(range(1, 13))
    logged = {entry["step"]: entry["loss"] for entry in printed["logged"] if "loss" in entry}
    assert {step.step: step.loss for step in steps if step.loss is not None} == logged
    assert set(logged) == {5, 10}
    assert all(step.learning_rate is not None for step in steps)
    assert 12 * SLEEP_SECONDS <= seconds_of(steps) <= printed["seconds"]


def test_the_loss_of_an_epoch_is_in_the_row_of_its_last_step(place: Place) -> None:
    saving = {"save_strategy": "steps", "save_steps": 20}
    printed = place.train("transformers", steps=20, arguments={"logging_strategy": "epoch", **saving}).printed
    steps = place.steps()
    assert [step.step for step in steps] == list(range(1, 21))
    logged = {entry["step"]: entry["loss"] for entry in printed["logged"] if "loss" in entry}
    assert {step.step: step.loss for step in steps if step.loss is not None} == logged
    assert set(logged) == {8, 16, 20}
    # The last step is saved before its loss is logged.
    assert all((step.step_time_seconds or 0) >= SLEEP_SECONDS for step in steps)
    assert [details["step"] for kind, details in place.events() if kind == "save_start"] == [20]
    assert steps[-1].timestamp <= place.event_times("save_start")[0]


def test_accumulated_batches_are_one_step(place: Place) -> None:
    printed = place.train("transformers", steps=6, accumulate=3).printed
    steps = place.steps()
    assert [step.step for step in steps] == [1, 2, 3, 4, 5, 6]
    assert [step.loss for step in steps] == [entry["loss"] for entry in printed["logged"] if "loss" in entry]
    # An epoch has 8 batches, so its last step has only two.
    assert all((step.step_time_seconds or 0) >= 2 * SLEEP_SECONDS for step in steps)


def test_saves_and_evaluations_are_recorded_and_are_no_time_of_a_step(place: Place) -> None:
    each_fourth = {"save_strategy": "steps", "save_steps": 4, "eval_strategy": "steps", "eval_steps": 4}
    printed = place.train("transformers", steps=12, arguments=each_fourth).printed
    assert place.event_names() == ["training_start", *["save_start", "save_end"] * 3, "training_end"]
    for started, ended in zip(place.event_times("save_start"), place.event_times("save_end"), strict=True):
        assert ended - started >= SAVE_SECONDS
    assert [details["step"] for kind, details in place.events() if kind == "save_start"] == [4, 8, 12]
    assert seconds_of(place.steps()) <= printed["seconds"] - 3 * SAVE_SECONDS
    evaluated = {entry["step"]: entry["eval_loss"] for entry in printed["logged"] if "eval_loss" in entry}
    assert place.values("eval_loss") == evaluated
    assert set(evaluated) == {4, 8, 12}


def test_a_resumed_training_continues_its_numbers(place: Place) -> None:
    place.train("transformers", steps=8, arguments={"save_strategy": "steps", "save_steps": 4})
    place.train("transformers", steps=12, resume="out/checkpoint-8")
    assert [step.step for step in place.steps()] == list(range(1, 13))
    assert place.event_names().count("training_start") == 2


def test_no_step_is_lost_when_the_training_is_killed(place: Place) -> None:
    killed = place.train("transformers", steps=200, kill_at=150, arguments={"logging_steps": 10})
    assert killed.exit_code == -9
    place.replay()
    # The callback that kills comes first, in its 150th step.
    assert [step.step for step in place.steps()] == list(range(1, 150))
    assert place.event_names() == ["training_start"]


def test_running_out_of_memory_is_an_event_before_the_end(place: Place) -> None:
    failed = place.train("transformers", steps=12, fail_at=6)
    assert failed.exit_code == 1
    assert place.event_names() == ["training_start", "oom_error", "training_end"]
    details = place.events()[1][1]
    assert details["step"] == 5
    assert "Tried to allocate" in details["message"]
    assert details["config"]["per_device_train_batch_size"] == 2


def test_a_smaller_batch_after_running_out_of_memory_is_an_adjustment(place: Place) -> None:
    place.train("transformers", steps=6, fail_at=4, arguments={"auto_find_batch_size": True}).printed  # noqa: B018
    names = place.event_names()
    assert names[:2] == ["training_start", "oom_error"]
    adjusted = dict(place.events())["batch_size_adjustment"]
    assert adjusted["old_batch_size"] == 2
    assert adjusted["new_batch_size"] == 1
    assert names[-1] == "training_end"
    assert [step.step for step in place.steps()] == [1, 2, 3, 1, 2, 3, 4, 5, 6]


def test_of_two_processes_the_first_records_the_steps(place: Place) -> None:
    printed = place.train("transformers", steps=4, processes=2).printed
    steps = place.steps()
    assert [step.step for step in steps] == [1, 2, 3, 4]
    assert [step.loss for step in steps] == [entry["loss"] for entry in printed["logged"] if "loss" in entry]
    assert place.event_names() == ["training_start", "training_end"]
