"""From which step on a run's checkpoints are worth nothing."""

from __future__ import annotations

import math

import pytest

from stationmaster.control.states.executing.vitals import spoilt_from
from stationmaster.watch.anomalies.base import LossPoint


@pytest.mark.parametrize(
    ("losses", "step"),
    [
        ([0.5, 0.4, 0.3], None),
        ([0.5, 0.4, math.nan, math.nan], 2),
        ([0.5, 0.4, 0.0, 0.0], 2),
        ([0.5, 0.0, 0.4, 0.0, 0.0], 3),
        ([0.5, math.inf, 0.0, 0.0], 1),
        ([0.5, 0.0, math.nan], 1),
        ([], None),
    ],
)
def test_losses_that_are_no_numbers_or_exactly_zero_to_the_end_spoil_what_is_saved(
    losses: list[float], step: int | None
) -> None:
    points = [LossPoint(at=float(number), step=number, loss=loss) for number, loss in enumerate(losses)]
    assert spoilt_from(points) == step
