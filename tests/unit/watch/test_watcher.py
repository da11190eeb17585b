"""The stall watch over single readings: pauses, repeats, recovery, state."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stationmaster.parsers import LogReader
from stationmaster.watch.log_moment import LogMoment, log_moment
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.signs import SignsOfLife
from stationmaster.watch.watcher import StallWatch
from tests.support.watching.trace_maker import ALL_TRAINERS, MadeTrace, Trainer
from tests.support.watching.trace_scenarios import HEALTHY, STALLED, Scenario

MINUTE = 60.0


class Watched:
    """A watch driven by hand: steps every two seconds of training, a look every minute."""

    def __init__(self, policy: StallPolicy | None = None, total: int | None = 6000) -> None:
        self.watch = StallWatch(policy or StallPolicy(), total_steps=total)
        self.now = 0.0
        self.step = 0
        self.events: list[tuple[str, float]] = []
        self.watch.observe(LogMoment(at=0.0, step=0, total=total, phase="training"))

    def look(self) -> None:
        look = self.watch.look(self.now)
        self.latest = look.analysis
        if look.event:
            self.events.append((look.event.kind, look.event.at))

    def wait(self, minutes: float) -> Watched:
        for _ in range(round(minutes)):
            self.now += MINUTE
            self.look()
        return self

    def train(self, minutes: float, *, step_seconds: float = 2.0) -> Watched:
        for _ in range(round(minutes)):
            begin = self.now
            for part in range(1, 7):
                self.now = begin + part * 10
                self.step += round(10 / step_seconds)
                self.watch.observe(LogMoment(at=self.now, step=self.step, total=6000, phase="training"))
            self.look()
        return self

    def phase(self, name: str) -> Watched:
        self.watch.observe(LogMoment(at=self.now, phase=name))
        return self

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


def test_a_silence_in_training_is_a_stall_after_ten_minutes_with_a_reason_in_numbers() -> None:
    run = Watched().train(30).wait(12)
    assert run.events == [("stall_flagged", 41 * MINUTE)]
    assert run.latest.cause == "hang"
    assert "step 900" in run.latest.reason
    assert run.latest.confidence == "high"


def test_an_announced_pause_stops_the_clock() -> None:
    assert Watched().train(30).phase("saving").wait(13).train(10).kinds == []


def test_an_announced_pause_does_not_stop_it_for_ever() -> None:
    run = Watched().train(30).phase("sampling").wait(16)
    assert run.kinds == ["stall_flagged"]
    assert "Sampling" in run.latest.reason


def test_a_pause_as_long_as_this_run_is_used_to_is_no_stall() -> None:
    run = Watched().train(20).phase("saving").wait(13).train(20).phase("saving").wait(20)
    assert run.kinds == []


def test_a_configured_limit_of_a_phase_holds() -> None:
    policy = StallPolicy().changed({"saving_limit": "30m"})
    assert Watched(policy).train(30).phase("saving").wait(29).kinds == []


def test_a_sampler_that_loads_its_pipeline_is_still_sampling() -> None:
    run = Watched().train(30).phase("sampling").wait(8).phase("loading").wait(8)
    assert run.kinds == ["stall_flagged"]


def test_a_flag_clears_when_steps_come_as_before() -> None:
    run = Watched().train(30).wait(12).train(3)
    assert run.kinds == ["stall_flagged", "stall_cleared"]


def test_a_crawl_does_not_clear_the_flag() -> None:
    run = Watched().train(30).wait(12).train(20, step_seconds=10)
    assert run.kinds == ["stall_flagged", "terminate"]


def test_how_fast_a_stalled_run_has_to_get_again_is_a_threshold_of_its_own() -> None:
    for changed, ends in ({"resume_pace": 0.3}, "stall_cleared"), ({"speed_drop_threshold": 0.3}, "terminate"):
        run = Watched(StallPolicy().changed(changed)).train(30).wait(12).train(16, step_seconds=5.0)
        assert run.kinds[1] == ends, changed


def test_standing_still_scales_with_the_window_and_the_limits_of_pauses_do_not() -> None:
    short = StallPolicy().changed({"min_window": "5m"})
    assert Watched(short).train(30).wait(12).events[0] == ("stall_flagged", 36 * MINUTE)
    for policy in (short, StallPolicy()):
        assert Watched(policy).train(30).phase("saving").wait(16).events[0] == ("stall_flagged", 45 * MINUTE)


def test_the_recommendation_is_alert_until_the_grace_is_over() -> None:
    run = Watched().train(30).wait(12)
    assert run.latest.recommendation == "alert"
    assert run.wait(15).latest.recommendation == "terminate"


def test_an_end_is_told_once() -> None:
    assert Watched().train(30).wait(120).kinds == ["stall_flagged", "terminate"]


def test_nobody_looking_proves_no_silence() -> None:
    run = Watched().train(30)
    run.now += 3 * 3600
    run.look()
    assert run.train(5).kinds == []


def test_a_clock_set_back_passes_no_time() -> None:
    run = Watched().train(30)
    run.now -= 1800
    run.look()
    assert run.train(20).kinds == []


def test_a_clock_set_forward_is_no_collapse() -> None:
    run = Watched().train(30)
    run.now += 3600
    assert run.train(40).kinds == []


def test_a_single_drop_only_warns() -> None:
    run = Watched().train(40).train(60, step_seconds=5)
    assert run.kinds == []
    assert Watched().train(40).train(25, step_seconds=5).latest.confidence == "low"


def test_a_drop_to_a_tenth_is_a_stall_though_the_eta_falls_again() -> None:
    run = Watched().train(40)
    for _ in range(20):
        run.step += 1
        run.now += 30
        run.watch.observe(LogMoment(at=run.now, step=run.step, total=6000))
        run.step += 1
        run.now += 30
        run.watch.observe(LogMoment(at=run.now, step=run.step, total=6000))
        run.look()
    assert run.kinds == ["stall_flagged"]
    assert run.latest.cause == "collapse"


def test_nothing_is_said_close_to_the_end() -> None:
    run = Watched()
    run.step = 5000
    assert run.train(27).wait(60).kinds == []  # 5810 of 6000: six minutes left


def test_a_finished_run_may_be_quiet() -> None:
    assert Watched().train(30).phase("finished").wait(100).kinds == []


def test_a_run_that_is_off_watch_is_never_flagged() -> None:
    assert Watched(StallPolicy(enabled=False)).train(30).wait(60).kinds == []


def test_repeated_steps_after_a_resume_are_healthy_while_they_catch_up() -> None:
    run = Watched().train(40)
    run.step -= 600
    assert run.train(60).kinds == []


def test_the_state_of_a_long_run_stays_small() -> None:
    run = Watched(total=60000).train(300)
    assert len(json.dumps(run.watch.state())) < 20_000


SCENARIOS = st.sampled_from(sorted({**HEALTHY, **STALLED}.items()))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(SCENARIOS, st.sampled_from(ALL_TRAINERS), st.integers(0, 50), st.lists(st.integers(0, 300), max_size=4))
def test_a_watch_put_down_and_taken_up_anywhere_says_the_same(
    scenario: tuple[str, Scenario], trainer: type[Trainer], seed: int, cuts: list[int]
) -> None:
    made = scenario[1](seed, trainer)
    assert looked(made, cuts) == looked(made, [])


def looked(made: MadeTrace, cuts: Iterable[int]) -> list[object]:
    """Every analysis and event of a run, the memory going through JSON at the looks of those numbers."""
    total = made.total_steps
    watch, signs, reader = StallWatch(total_steps=total), SignsOfLife(), LogReader("auto", total_steps=total)
    chunks = list(made.chunks)
    said: list[object] = []
    for number in range(int(made.end // MINUTE)):
        while chunks and chunks[0][0] <= number * MINUTE:
            at, text = chunks.pop(0)
            watch.observe(log_moment(reader.feed(text.encode(), at), at=at, moved=signs.feed(text)))
        if number in cuts:
            watch = StallWatch.restore(json.loads(json.dumps(watch.state())), total_steps=total)
            signs = SignsOfLife.restore(json.loads(json.dumps(signs.state())))
        look = watch.look(number * MINUTE)
        said.append((look.analysis, look.event))
    return said
