"""The callback for the Trainer of Lightning, in real trainings."""

from __future__ import annotations

import pytest

from tests.integrations.trainings import Place, seconds_of

PACKAGES = [
    pytest.param(name, marks=pytest.mark.framework(name.partition(".")[0], "torch"), id=name)
    for name in ("lightning.pytorch", "pytorch_lightning")
]
pytestmark = pytest.mark.framework("lightning", "torch")

SLEEP_SECONDS = 0.005  # in each batch


@pytest.fixture
def package() -> str:
    return "lightning.pytorch"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_step_has_its_loss_learning_rate_and_time(place: Place, package: str) -> None:
    printed = place.train("lightning", package=package, steps=12).printed
    steps = place.steps()
    assert [step.step for step in steps] == list(range(1, 13))
    assert [step.loss for step in steps] == printed["losses"]
    assert [step.learning_rate for step in steps] == pytest.approx([0.1 / step for step in range(1, 13)])
    assert {step.batch_size for step in steps} == {2}
    assert all((step.step_time_seconds or 0) >= SLEEP_SECONDS for step in steps)
    assert seconds_of(steps) <= printed["seconds"]
    # What the module logs is stored every four steps, and after each validation.
    assert place.values("twice") == pytest.approx({step: 2 * printed["losses"][step - 1] for step in (4, 8, 12)})
    assert place.values("val_loss").keys() == {8}
    assert place.facts()["total_steps"] == "12"


def test_the_start_the_saves_and_the_end_are_events(place: Place) -> None:
    assert place.train("lightning", steps=12).exit_code == 0
    assert place.event_names() == ["training_start", *["save_start", "save_end"] * 2, "training_end"]
    assert [details["step"] for kind, details in place.events() if kind == "save_start"] == [6, 12]
    config = place.events()[0][1]["config"]
    assert (config["rate"], config["max_steps"]) == (0.1, 12)


def test_accumulated_batches_are_one_step_with_the_mean_of_their_losses(place: Place) -> None:
    losses = place.train("lightning", steps=6, accumulate=2).printed["losses"]
    steps = place.steps()
    assert [step.step for step in steps] == [1, 2, 3, 4, 5, 6]
    assert [step.loss for step in steps] == pytest.approx([sum(losses[at : at + 2]) / 2 for at in range(0, 12, 2)])
    assert all((step.step_time_seconds or 0) >= 2 * SLEEP_SECONDS for step in steps)


def test_a_module_that_steps_its_optimizer_itself_has_rows_too(place: Place) -> None:
    printed = place.train("lightning", steps=8, manual=True).printed
    assert [step.step for step in place.steps()] == list(range(1, 9))
    assert place.steps()[3].loss == pytest.approx(printed["losses"][3])


def test_a_resumed_training_continues_its_numbers(place: Place) -> None:
    place.train("lightning", steps=6)
    saved = next((place.folder / "saved").glob("*.ckpt"))
    assert place.train("lightning", steps=9, resume=str(saved)).exit_code == 0
    assert [step.step for step in place.steps()] == list(range(1, 10))


def test_no_step_is_lost_when_the_training_is_killed(place: Place) -> None:
    killed = place.train("lightning", steps=500, kill_at=100)
    assert killed.exit_code == -9
    place.replay()
    assert [step.step for step in place.steps()] == list(range(1, 101))


def test_running_out_of_memory_is_an_event_before_the_end(place: Place) -> None:
    assert place.train("lightning", fail_at=4).exit_code == 1
    assert place.event_names() == ["training_start", "oom_error", "training_end"]
    assert place.events()[1][1]["step"] == 3


def test_of_two_processes_the_first_records_the_steps(place: Place) -> None:
    printed = place.train("lightning", steps=4, processes=2).printed
    assert [step.step for step in place.steps()] == [1, 2, 3, 4]
    assert [step.loss for step in place.steps()] == printed["losses"]
    assert place.event_names() == ["training_start", "training_end"]
