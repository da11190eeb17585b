"""The verdict over a history of ETAs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.saved_state import from_json, to_json
from stationmaster.watch.escalation import CLEARED, FLAGGED, TERMINATE, Escalation
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.stall import EtaReading, judge

POLICY = StallPolicy()


def readings(*rows: tuple[float, float, float, float]) -> list[EtaReading]:
    return [EtaReading(at=at, eta_seconds=eta, step=step, steps_per_second=speed) for at, eta, step, speed in rows]


FOUR_ROWS = readings(
    (0, 7200, 3000, 0.222), (1800, 7100, 3200, 0.111), (3600, 7200, 3350, 0.111), (5400, 7500, 3500, 0.111)
)


def steadily(count: int, *, every: float = 60.0, eta: float = 9000.0, fall: float = 1.0) -> list[EtaReading]:
    return [
        EtaReading(at=n * every, eta_seconds=eta - fall * n * every, step=n * 30, steps_per_second=0.5)
        for n in range(count)
    ]


def test_the_four_row_history_is_stalling_and_ends_once_the_grace_is_over() -> None:
    found = judge(FOUR_ROWS, POLICY, total_steps=4000)
    assert (found.is_stalling, found.confidence, found.recommendation) == (True, "medium", "alert")
    assert judge(FOUR_ROWS, POLICY, total_steps=4000, grace_is_over=True).recommendation == "terminate"


def test_the_reason_names_the_level_of_the_eta_the_span_and_the_steps() -> None:
    reason = judge(FOUR_ROWS, POLICY, total_steps=4000).reason
    assert "2h5m" in reason
    assert "1h of training" in reason
    assert "300 steps" in reason


def test_the_documented_names_are_in_the_json() -> None:
    document = judge(FOUR_ROWS, POLICY, total_steps=4000).as_json()
    assert document["isStalling"] is True
    assert document["confidence"] == "medium"
    assert document["recommendation"] == "alert"
    assert (document["currentStep"], document["totalSteps"]) == (3500, 4000)


def test_both_signals_together_are_high_confidence() -> None:
    rows = [*FOUR_ROWS[:3], EtaReading(at=5400, eta_seconds=7500, step=3500, steps_per_second=0.09)]
    assert judge(rows, POLICY).confidence == "high"


def test_speed_alone_only_warns() -> None:
    rows = [*steadily(20), EtaReading(at=1200, eta_seconds=7800, step=600, steps_per_second=0.2)]
    found = judge(rows, POLICY)
    assert (found.is_stalling, found.confidence, found.recommendation) == (False, "low", "watch")


def test_no_verdict_before_four_readings() -> None:
    assert not judge(FOUR_ROWS[:3], POLICY).is_stalling
    assert judge(FOUR_ROWS[:3], POLICY.changed({"min_samples": 3})).is_stalling


def test_three_readings_in_two_minutes_are_no_window() -> None:
    assert not judge(steadily(9, fall=0.0), POLICY).is_stalling
    assert judge(steadily(12, fall=0.0), POLICY).is_stalling


def test_exactly_half_still_converges() -> None:
    assert not judge(steadily(30, fall=0.5), POLICY).is_stalling
    assert judge(steadily(30, fall=0.49), POLICY).is_stalling


def test_no_verdict_close_to_the_end() -> None:
    flat = steadily(30, fall=0.0)
    assert not judge(flat, POLICY, total_steps=880).is_stalling
    assert not judge(steadily(30, eta=590, fall=0.0), POLICY).is_stalling


def test_detection_can_be_switched_off() -> None:
    assert not judge(FOUR_ROWS, POLICY.changed({"enabled": False})).is_stalling


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=4, max_size=30))
def test_an_eta_that_never_falls_is_stalling_and_one_that_falls_by_the_second_is_not(rises: list[float]) -> None:
    level, rising, falling = 5000.0, [], []
    for n, rise in enumerate(rises):
        level += rise
        rising.append(EtaReading(at=n * 300.0, eta_seconds=level, step=n))
        falling.append(EtaReading(at=n * 300.0, eta_seconds=20000.0 - n * 300.0, step=n))
    assert judge(rising, POLICY).is_stalling
    assert not judge(falling, POLICY).is_stalling


def test_a_stall_is_flagged_once_and_ended_after_the_grace() -> None:
    state, told = Escalation(), []
    for minute in range(40):
        state, kind = state.next(is_stalling=minute >= 5, at=minute * 60.0, policy=POLICY)
        told += [(kind, minute)] if kind else []
    assert told == [(FLAGGED, 5), (TERMINATE, 20)]


def test_progress_within_the_grace_clears_the_flag_and_the_next_stall_starts_over() -> None:
    state, told = Escalation(), []
    for minute in range(40):
        stalling = 5 <= minute < 15 or minute >= 20
        state, kind = state.next(is_stalling=stalling, at=minute * 60.0, policy=POLICY)
        told += [(kind, minute)] if kind else []
    assert told == [(FLAGGED, 5), (CLEARED, 15), (FLAGGED, 20), (TERMINATE, 35)]


def test_alert_only_never_ends_a_run() -> None:
    policy = POLICY.changed({"terminate": "off"})
    state = Escalation(flagged_at=0.0)
    assert state.next(is_stalling=True, at=1e6, policy=policy) == (state, None)


def test_a_run_that_is_just_coming_back_is_not_ended() -> None:
    state = Escalation(flagged_at=0.0)
    assert state.next(is_stalling=True, is_recovering=True, at=1000.0, policy=POLICY) == (state, None)


@given(st.lists(st.tuples(st.booleans(), st.floats(min_value=0, max_value=600)), max_size=60))
def test_no_end_comes_sooner_than_the_grace_after_its_flag(looks: list[tuple[bool, float]]) -> None:
    state, at, flagged_at = Escalation(), 0.0, None
    for stalling, wait in looks:
        at += wait
        state, kind = from_json(Escalation, to_json(state)).next(is_stalling=stalling, at=at, policy=POLICY)
        if kind == FLAGGED:
            flagged_at = at
        if kind == TERMINATE:
            assert flagged_at is not None
            assert at - flagged_at >= POLICY.grace


@pytest.mark.parametrize(
    ("name", "value", "seconds"), [("min_window", "5m", 300.0), ("grace", 60, 60.0), ("start_limit", "1h", 3600.0)]
)
def test_a_threshold_is_changed_by_name(name: str, value: object, seconds: float) -> None:
    assert getattr(POLICY.changed({name: value}), name) == seconds
