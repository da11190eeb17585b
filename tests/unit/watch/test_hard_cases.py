"""Runs that are easily judged wrongly: a drop that is over, a hang before anything is usual, a hang that talks."""

from __future__ import annotations

import pytest

from tests.support.watching.trace_maker import MINUTE, POLL, Diffusers, HuggingFace, MadeTrace, Run, Stall, Trainer
from tests.support.watching.watch_replay import complaint, events_of


def slow_run(seed: int, *, hours: float, step_seconds: float) -> Run:
    run = Run(Trainer(), seed=seed, total=int(hours * 3600 / step_seconds), step_seconds=step_seconds, wobble=0.1)
    run.load()
    return run


def hangs_at(run: Run) -> Stall:
    return Stall(onset=run.t, flag_after=run.t, flag_by=run.t + 10 * MINUTE + 2 * POLL)


def judged(made: MadeTrace) -> str | None:
    return complaint(made, events_of(made))


@pytest.mark.parametrize("seed", range(12))
def test_a_drop_to_a_third_or_a_quarter_only_warns_though_its_long_eta_wavers(seed: int) -> None:
    run = slow_run(seed, hours=2, step_seconds=6)
    run.train(int(0.4 * run.total))
    run.train(run.total - run.done, lambda _: 3.0 if seed % 2 else 4.0)
    assert judged(run.finish("drops_far")) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_slows_on_after_a_drop_is_stalled_at_more_than_half_of_its_speed(seed: int) -> None:
    run = slow_run(seed, hours=2, step_seconds=1.5)
    run.train(int(0.3 * run.total))
    onset = run.t
    run.train_for(70 * MINUTE, lambda trained: 1.3 * 2 ** (trained / (45 * MINUTE)))
    stall = Stall(onset=onset, flag_after=onset, flag_by=onset + 27 * MINUTE)
    assert judged(run.end("slows_on", after=10, stalls=[stall])) is None


def test_standing_still_in_the_first_minutes_is_not_learnt_as_usual() -> None:
    run = slow_run(3, hours=3, step_seconds=10)
    run.train(12)
    assert judged(run.end("hangs_early", after=45 * MINUTE, stalls=[hangs_at(run)])) is None


def test_silence_before_the_first_image_is_part_of_the_sampling() -> None:
    run = slow_run(5, hours=2, step_seconds=2)
    run.train(int(0.4 * run.total))
    stall = Stall(onset=run.t, flag_after=run.t + 8 * MINUTE, flag_by=run.t + 20 * MINUTE)
    run.sample(100 * MINUTE, images=16)
    assert judged(run.end("samples_for_ever", after=0, stalls=[stall])) is None


@pytest.mark.parametrize("trainer", [Diffusers, HuggingFace])
def test_the_errors_of_a_hanging_run_do_not_stop_its_clock(trainer: type[Trainer]) -> None:
    run = Run(trainer(), seed=7, total=3000, step_seconds=2)
    run.load()
    run.train(1200)
    stall = hangs_at(run)
    run.quiet(9 * MINUTE)
    for number in range(30):
        run.say(
            f"\n[rank{number % 4}]:[E302 11:20:{number:02}.4 ProcessGroupNCCL.cpp:632] Watchdog caught collective "
            f"operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for "
            f"{600000 + number} milliseconds before timing out.\n"
        )
        run.quiet(45)
    assert judged(run.end("hangs_with_errors", after=10 * MINUTE, stalls=[stall])) is None
