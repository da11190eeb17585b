"""nan, divergence and rises of the loss."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.analysis.facts.losses import Losses, LossRow


def losses(values: Sequence[float | None], *, zero_is_nan: bool = False, norms: Sequence[float] = ()) -> Losses:
    rows = tuple(
        LossRow(at=float(step), step=step, loss=value, gradient_norm=norms[step] if norms else None)
        for step, value in enumerate(values)
    )
    return Losses(rows=rows, zero_is_nan=zero_is_nan)


def test_three_rows_without_a_loss_at_the_end_are_nan_from_the_first_of_them() -> None:
    found = losses([0.3, 0.3, 0.3, None, None, None]).nan_at
    assert found is not None
    assert found.step == 3


def test_a_hole_in_the_middle_and_a_short_end_are_not() -> None:
    assert losses([0.3, None, None, None, 0.3, 0.3]).nan_at is None
    assert losses([0.3, 0.3, 0.3, 0.3, None, None]).nan_at is None
    assert losses([None, None, None, None]).nan_at is None


def test_zero_stands_for_nan_only_where_the_trainer_stores_it_so() -> None:
    values = [0.3, 0.4, 0.0, 0.0, 0.0]
    assert losses(values, zero_is_nan=True).nan_at is not None
    assert losses(values).nan_at is None


def test_a_trainer_that_logs_every_tenth_loss_has_no_nan_between() -> None:
    rows = losses([0.3, *[None] * 9, 0.3, *[None] * 9]).rows
    assert Losses(rows=rows, every_steps=10).nan_at is None


def test_a_loss_that_doubled_before_the_nan_rose() -> None:
    calm = [0.3] * 30
    assert losses([*calm, 0.4, 0.6, 0.9, 1.4, 2.0, None, None, None]).rose_before_nan() is not None
    assert losses([*calm, None, None, None]).rose_before_nan() is None


def test_gradients_of_ten_times_their_height_rose_too() -> None:
    values = [*[0.3] * 30, None, None, None]
    norms = [*[0.5] * 28, 2.0, 6.0, 0.0, 0.0, 0.0]
    assert losses(values, norms=norms).rose_before_nan() is not None
    assert losses(values, norms=[0.5] * 33).rose_before_nan() is None


def test_a_few_ordinary_values_before_a_nan_prove_no_rise() -> None:
    assert losses([0.2, 0.33, 0.38, None, None, None]).rose_before_nan() is None


def test_a_run_diverges_when_its_end_is_twice_its_lowest_level() -> None:
    falling = [1.0 - step / 100 for step in range(60)]
    assert losses(falling).divergence() is None
    ratio = losses([*falling, *[0.4 + step / 40 for step in range(40)]]).divergence()
    assert ratio is not None
    assert ratio > 2


def test_a_lowest_level_near_the_end_is_a_spike_not_a_divergence() -> None:
    assert losses([*[1.0] * 90, *[0.3] * 5, *[1.0] * 5]).divergence() is None


@given(st.lists(st.floats(0.25, 0.45), min_size=40, max_size=300))
def test_ordinary_noise_never_diverges(values: list[float]) -> None:
    assert losses(values).divergence() is None


@given(st.lists(st.one_of(st.none(), st.floats(-10, 1e6)), max_size=80), st.booleans())
def test_any_losses_can_be_asked_anything(values: list[float | None], zero_is_nan: bool) -> None:
    found = losses(values, zero_is_nan=zero_is_nan)
    found.rose_before_nan()
    found.divergence()
    found.fall()
    assert found.nan_at is None or found.nan_at in found.rows
