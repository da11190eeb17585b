"""The pace and the ETA that are measured where the log prints none: by when the steps were printed."""

from __future__ import annotations

import pytest

from stationmaster.watch.log_moment import LogMoment
from stationmaster.watch.watcher import StallWatch

TOTAL = 1000.0


def trained(watch: StallWatch, steps: range, *, begin: float, seconds_per_step: float = 2.0) -> float:
    """Print every step, and look after each; returns the time of the last."""
    at = begin
    for step in steps:
        at = begin + (step - steps.start) * seconds_per_step
        watch.observe(LogMoment(at=at, step=float(step), total=TOTAL))
        watch.look(at)
    return at


def test_nothing_is_known_before_two_steps_were_seen_to_pass() -> None:
    watch = StallWatch()
    assert (watch.steps_per_second, watch.eta_seconds) == (None, None)
    trained(watch, range(1, 3), begin=0.0)
    assert (watch.steps_per_second, watch.eta_seconds) == (None, None)
    trained(watch, range(3, 5), begin=4.0)
    assert watch.steps_per_second == pytest.approx(0.5)


def test_what_is_left_is_counted_at_the_measured_pace() -> None:
    watch = StallWatch()
    trained(watch, range(1, 201), begin=100.0)
    assert watch.steps_per_second == pytest.approx(0.5)
    assert watch.eta_seconds == pytest.approx(800 / 0.5)
    assert watch.is_measured


@pytest.mark.parametrize("pause", ["sampling", "saving", "evaluating"])
def test_a_pause_that_is_announced_does_not_slow_it_down(pause: str) -> None:
    watch = StallWatch()
    at = trained(watch, range(1, 101), begin=0.0)
    watch.observe(LogMoment(at=at + 1, phase=pause, moved=True))
    watch.look(at + 300)
    assert watch.steps_per_second == pytest.approx(0.5, rel=0.02)
    at = trained(watch, range(101, 111), begin=at + 302)
    assert watch.steps_per_second == pytest.approx(0.5, rel=0.05)
    assert watch.eta_seconds == pytest.approx(890 / 0.5, rel=0.05)


def test_the_first_slow_step_is_no_part_of_the_pace() -> None:
    watch = StallWatch()
    watch.observe(LogMoment(at=0.0, step=0.0, total=TOTAL))
    trained(watch, range(1, 20), begin=400.0)
    assert watch.steps_per_second == pytest.approx(0.5)


def test_redraws_of_one_step_are_no_progress() -> None:
    watch = StallWatch()
    at = trained(watch, range(1, 101), begin=0.0)
    for redraw in range(5):
        watch.observe(LogMoment(at=at + redraw / 10, step=100.0, total=TOTAL))
    assert watch.steps_per_second == pytest.approx(0.5)


def test_steps_that_a_resumed_run_repeats_count_as_left() -> None:
    watch = StallWatch()
    at = trained(watch, range(1, 201), begin=0.0)
    watch.observe(LogMoment(at=at + 1, phase="loading", moved=True))
    watch.observe(LogMoment(at=at + 60, step=150.0, total=TOTAL))
    assert watch.steps_per_second == pytest.approx(0.5, rel=0.02)
    assert watch.eta_seconds == pytest.approx(850 / 0.5, rel=0.02)


def test_a_run_that_begins_at_its_checkpoint_has_the_pace_of_its_own_steps() -> None:
    watch = StallWatch()
    trained(watch, range(600, 651), begin=30.0)
    assert watch.steps_per_second == pytest.approx(0.5)
    assert watch.eta_seconds == pytest.approx(350 / 0.5)


def test_a_step_that_is_overdue_lowers_the_pace_and_raises_the_eta() -> None:
    watch = StallWatch()
    at = trained(watch, range(1, 101), begin=0.0)
    before = watch.eta_seconds
    watch.look(at + 200)
    assert before is not None
    assert watch.eta_seconds is not None
    assert watch.eta_seconds > 1.5 * before


def test_where_only_epochs_are_counted_there_is_an_eta_and_no_speed() -> None:
    watch = StallWatch()
    for epoch in range(1, 6):
        watch.observe(LogMoment(at=epoch * 60.0, epoch=float(epoch), total_epochs=10.0))
    assert watch.steps_per_second is None
    assert watch.eta_seconds == pytest.approx(300.0)
