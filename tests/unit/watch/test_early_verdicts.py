"""The stall watch with samples of the machine: early where they prove a stall, never for a healthy run."""

from __future__ import annotations

from statistics import median

import pytest

from stationmaster.watch.escalation import CLEARED, FLAGGED, TERMINATE, StallEvent
from tests.support.watching.machine_maker import SampledTrace
from tests.support.watching.machine_scenarios import (
    HEALTHY,
    PROVEN,
    UNPROVEN,
    SampledScenario,
    tries_again_and_again,
)
from tests.support.watching.watch_replay import complaint, events_of

SEEDS = (2,)


def replayed(trace: SampledTrace) -> list[StallEvent]:
    return events_of(trace.made, samples=trace.samples)


def flagged_at(events: list[StallEvent]) -> float:
    return next(event.at for event in events if event.kind == FLAGGED)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", HEALTHY.values(), ids=HEALTHY.keys())
def test_a_healthy_run_is_not_flagged_whatever_its_machine_does(scenario: SampledScenario, seed: int) -> None:
    trace = scenario(seed)
    assert complaint(trace.made, replayed(trace)) is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", PROVEN.values(), ids=PROVEN.keys())
def test_a_stall_that_the_machine_proves_is_flagged_early(scenario: SampledScenario, seed: int) -> None:
    trace = scenario(seed)
    events = replayed(trace)
    assert complaint(trace.made, events) is None
    assert "asleep" in events[0].analysis.reason


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", UNPROVEN.values(), ids=UNPROVEN.keys())
def test_without_proof_the_window_decides_as_it_does_without_samples(scenario: SampledScenario, seed: int) -> None:
    trace = scenario(seed)
    events = replayed(trace)
    assert complaint(trace.made, events) is None
    assert [(event.kind, event.at) for event in events] == [(event.kind, event.at) for event in events_of(trace.made)]


def test_proof_shortens_the_median_delay_by_a_third() -> None:
    traces = [scenario(3) for name, scenario in PROVEN.items() if name != "works_again_without_a_step"]
    early = [flagged_at(replayed(trace)) - trace.stalls[0].onset for trace in traces]
    usual = [flagged_at(events_of(trace.made)) - trace.stalls[0].onset for trace in traces]
    assert median(early) <= median(usual) / 1.5
    assert all(sooner <= later for sooner, later in zip(early, usual, strict=True))


def test_an_early_flag_is_withdrawn_when_the_machine_works_again() -> None:
    events = replayed(PROVEN["works_again_without_a_step"](2))
    assert [event.kind for event in events] == [FLAGGED, CLEARED]
    assert events[1].analysis.reason == "The machine works again."


def test_a_run_that_tries_again_and_again_is_still_stopped() -> None:
    """It sleeps, works for a while without a step, and sleeps again: the time without a step goes on counting."""
    trace = tries_again_and_again(1)
    events, by_log_alone = replayed(trace), events_of(trace.made)
    assert (events[0].kind, events[-1].kind, by_log_alone[-1].kind) == (FLAGGED, TERMINATE, TERMINATE)
    assert events[-1].at <= by_log_alone[-1].at
