"""The stall watch on made-up runs of every trainer: no alarm for a healthy one, the stalled ones flagged in bounds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.watching.trace_maker import ALL_TRAINERS, Trainer
from tests.support.watching.trace_scenarios import HEALTHY, STALLED, Scenario
from tests.support.watching.watch_replay import complaint, events_of

SEEDS = st.integers(min_value=0, max_value=200)
TRAINERS = st.sampled_from(ALL_TRAINERS)
BOUNDED = settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@pytest.mark.parametrize("scenario", HEALTHY.values(), ids=HEALTHY.keys())
@BOUNDED
@given(seed=SEEDS, trainer=TRAINERS)
def test_a_healthy_run_is_never_flagged(scenario: Scenario, seed: int, trainer: type[Trainer]) -> None:
    made = scenario(seed, trainer)
    assert complaint(made, events_of(made)) is None


@pytest.mark.parametrize("scenario", STALLED.values(), ids=STALLED.keys())
@BOUNDED
@given(seed=SEEDS, trainer=TRAINERS)
def test_a_stall_is_flagged_cleared_and_ended_in_bounds(scenario: Scenario, seed: int, trainer: type[Trainer]) -> None:
    made = scenario(seed, trainer)
    assert complaint(made, events_of(made)) is None
