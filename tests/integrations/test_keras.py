"""The callback for Keras, in real trainings."""

from __future__ import annotations

import pytest

from tests.integrations.trainings import Place, seconds_of

pytestmark = pytest.mark.framework("keras")

BACKENDS = [pytest.param(name, marks=pytest.mark.framework(name)) for name in ("torch", "jax")]
PER_EPOCH = 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_step_has_its_own_loss_its_learning_rate_and_time(place: Place, backend: str) -> None:
    printed = place.train("keras", backend=backend, epochs=3).printed
    steps = place.steps()
    assert [step.step for step in steps] == list(range(1, 25))
    # Keras logs the mean of the epoch's losses after each batch, and at its end.
    for epoch in range(3):
        of_epoch = [step.loss or 0 for step in steps[epoch * PER_EPOCH : (epoch + 1) * PER_EPOCH]]
        means = dict(printed["means"][epoch * PER_EPOCH : (epoch + 1) * PER_EPOCH])
        assert [sum(of_epoch[:n]) / n for n in range(1, 9)] == pytest.approx([means[n] for n in range(8)], rel=1e-4)
    assert [step.learning_rate for step in steps] == pytest.approx([0.1] * 24)
    assert all(step.step_time_seconds is not None and step.step_time_seconds >= 0 for step in steps)
    assert seconds_of(steps) <= printed["seconds"]
    assert place.values("epoch_loss") == dict(zip((8, 16, 24), printed["history"]["loss"], strict=True))
    assert place.values("val_loss") == dict(zip((8, 16, 24), printed["history"]["val_loss"], strict=True))
    assert place.event_names() == ["training_start", "training_end"]
    assert place.facts() | {"framework": "keras", "total_steps": "24"} == place.facts()


def test_the_learning_rate_of_a_schedule_is_that_of_the_step(place: Place) -> None:
    place.train("keras", epochs=1, schedule=True)
    # It takes long to compute, so not every step has it.
    known = {step.step: step.learning_rate for step in place.steps() if step.learning_rate is not None}
    assert known == pytest.approx({step: 0.1 / step for step in known})
    assert 1 in known


@pytest.mark.parametrize("backend", BACKENDS)
def test_accumulated_batches_are_one_step(place: Place, backend: str) -> None:
    place.train("keras", backend=backend, epochs=2, accumulate=3)
    assert [step.step for step in place.steps()] == [1, 2, 3, 4, 5]


@pytest.mark.framework("jax")
def test_batches_that_are_executed_together_are_one_row(place: Place) -> None:
    printed = place.train("keras", backend="jax", epochs=2, together=3).printed
    assert [step.step for step in place.steps()] == [3, 6, 8, 11, 14, 16]
    first, second, third = (step.loss or 0 for step in place.steps()[:3])
    assert (3 * first + 3 * second + 2 * third) / 8 == pytest.approx(printed["history"]["loss"][0], rel=1e-4)


def test_a_resumed_training_continues_its_numbers(place: Place) -> None:
    place.train("keras", epochs=1)
    assert place.train("keras", epochs=1, resume="model.keras").exit_code == 0
    assert [step.step for step in place.steps()] == list(range(1, 17))


def test_no_step_is_lost_when_the_training_is_killed(place: Place) -> None:
    killed = place.train("keras", epochs=100, kill_at=150)
    assert killed.exit_code == -9
    place.replay()
    assert [step.step for step in place.steps()] == list(range(1, 151))


def test_running_out_of_memory_is_an_event_before_the_end(place: Place) -> None:
    assert place.train("keras", fail_at=4).exit_code == 1
    assert place.event_names() == ["training_start", "oom_error", "training_end"]
    assert place.events()[1][1]["step"] == 4
