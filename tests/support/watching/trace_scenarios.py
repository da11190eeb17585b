"""Healthy and stalled runs for the stall watch, one function each; bounds follow from what was put in."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.watching.trace_maker import (
    MINUTE,
    POLL,
    HuggingFaceLines,
    MadeTrace,
    Plain,
    Run,
    Stall,
    Trainer,
    constantly,
)

Scenario = Callable[[int, type[Trainer]], MadeTrace]


def new_run(seed: int, trainer: type[Trainer], *, hours: float = 1.6, step: float = 1.9, wobble: float = 0.06) -> Run:
    spread = random.Random(seed * 7 + 1)
    step_seconds = step * spread.uniform(0.7, 1.4)
    total = int(hours * spread.uniform(0.85, 1.2) * 3600 / step_seconds) // 100 * 100
    return Run(trainer(), seed=seed, total=total, step_seconds=step_seconds, wobble=wobble)


def pauses(run: Run, rounds: int, pause: Callable[[], None]) -> None:
    for _ in range(rounds):
        run.train(run.total // (rounds + 1))
        pause()


# ---- healthy ---------------------------------------------------------------------------------------------------


def steady(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    return run.finish("steady")


def long_pauses(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    pauses(run, 5, lambda: run.save(run.random.uniform(4, 7.9) * MINUTE))
    return run.finish("long_pauses")


def saving_then_sampling(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()

    def both() -> None:
        run.save(run.random.uniform(5, 7.9) * MINUTE)
        run.sample(run.random.uniform(5, 7.9) * MINUTE)

    pauses(run, 4, both)
    return run.finish("saving_then_sampling")


def growing_evaluation(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    minutes = iter(range(1, 8))
    pauses(run, 7, lambda: run.evaluate(next(minutes) * MINUTE))
    return run.finish("growing_evaluation")


def epoch_gaps(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()

    def turn() -> None:
        run.say(run.trainer.epoch(run))
        run.quiet(run.random.uniform(2, 5.9) * MINUTE)

    pauses(run, 3, turn)
    return run.finish("epoch_gaps")


def noisy_host(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=2.2, wobble=0.2)
    run.load()
    while run.done < run.total - 900:
        run.train_for(run.random.uniform(5, 14) * MINUTE)
        factor = 1 / run.random.uniform(0.3, 0.5)
        run.train_for(run.random.uniform(1, 3) * MINUTE, constantly(factor))
    return run.finish("noisy_host")


def buckets(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=3)
    run.load()
    run.train(run.total - 50, lambda _: run.random.choice((0.4, 0.8, 1.6)))
    return run.finish("buckets")


def slow_steps(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=5, step=65)
    run.trainer.every = min(run.trainer.every, 8)
    run.load()
    return run.finish("slow_steps")


def sparse_lines(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=4)
    run.trainer = HuggingFaceLines() if seed % 2 else Plain()
    run.trainer.every = int(run.random.uniform(9, 13) * MINUTE / run.step_seconds)
    run.load(60)
    return run.finish("sparse_lines")


def long_start(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=0.8)
    run.say("Downloading model files\n")
    run.download(14 * MINUTE)
    run.download(9 * MINUTE, label="model-00002-of-00002.safetensors")
    run.cache(14 * MINUTE)
    run.load(7 * MINUTE)
    return run.finish("long_start")


def compiles_first(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=0.8)
    run.load()
    run.sample(4 * MINUTE)
    run.draw()
    run.quiet(7.5 * MINUTE)
    return run.finish("compiles_first")


def crash_and_resume(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    run.train(int(run.total * 0.45))
    run.crash(back_to=int(run.total * 0.3), loading=4 * MINUTE)
    return run.finish("crash_and_resume")


def renumbered_resume(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    run.train(int(run.total * 0.3))
    run.crash(back_to=int(run.total * 0.25), is_renumbered=True)
    return run.finish("renumbered_resume")


def late_burst(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    run.train(run.total // 2)
    cut = len(run.chunks)
    run.train_for(5.5 * MINUTE)
    late = "".join(text for _, text in run.chunks[cut:])
    run.chunks[cut:] = [(round(run.t, 1), late)]
    return run.finish("late_burst")


def lines_sent_twice(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    for _ in range(3):
        run.train(run.total // 4)
        again = "".join(text for _, text in run.chunks[-20:])
        run.say(again)
    return run.finish("lines_sent_twice")


def slow_end(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    run.train(int(run.total * 0.985))
    run.train(run.total - run.done, lambda _: 12.0)
    run.draw()
    run.save(22 * MINUTE)
    run.say("Uploading model to the hub\n")
    return run.end("slow_end", after=12 * MINUTE)


def unknown_total(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, wobble=0.15)
    run.load()
    run.train(int(run.total * 0.9))
    return run.end("unknown_total", after=30, total_known=False)


def chatty(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    for _ in range(60):
        run.train(run.total // 70)
        run.say(f"\n[monitor] gpu util {run.random.randrange(100)}%, mem {run.random.uniform(20, 23):.1f} GiB\n")
    return run.finish("chatty")


def drops_once(seed: int, trainer: type[Trainer]) -> MadeTrace:
    """To 45 % of the speed for good: worth a warning, no stall, for the ETA comes closer again."""
    run = new_run(seed, trainer, hours=1.2)
    run.load()
    run.train(run.total // 3)
    run.train(run.total - run.done - 60, lambda _: 2.2)
    return run.finish("drops_once")


HEALTHY: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        steady,
        long_pauses,
        saving_then_sampling,
        growing_evaluation,
        epoch_gaps,
        noisy_host,
        buckets,
        slow_steps,
        sparse_lines,
        long_start,
        compiles_first,
        crash_and_resume,
        renumbered_resume,
        late_burst,
        lines_sent_twice,
        slow_end,
        unknown_total,
        chatty,
        drops_once,
    )
}


# ---- stalled ---------------------------------------------------------------------------------------------------


def standstill(run: Run, onset: float) -> Stall:
    line = max(run.trainer.every * run.step_seconds, run.trainer.redraw)
    allowed = max(10 * MINUTE, 20 * run.step_seconds, 3 * line)
    return Stall(onset=onset, flag_after=onset, flag_by=onset + allowed + 2 * POLL)


def too_long_a_pause(onset: float) -> Stall:
    return Stall(onset=onset, flag_after=onset + 8 * MINUTE, flag_by=onset + 20 * MINUTE)


def some_way(run: Run) -> None:
    run.load()
    run.train(int(run.total * run.random.uniform(0.3, 0.6)))


def hang(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    return run.end("hang", after=45 * MINUTE, stalls=[standstill(run, run.t)])


def hang_early(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load()
    run.train_for(max(4 * MINUTE, 4 * run.trainer.every * run.step_seconds))
    return run.end("hang_early", after=45 * MINUTE, stalls=[standstill(run, run.t)])


def hang_with_unknown_total(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    return run.end("hang_with_unknown_total", after=45 * MINUTE, total_known=False, stalls=[standstill(run, run.t)])


def hang_with_heartbeat(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    stall = standstill(run, run.t)
    for _ in range(80):
        run.quiet(30)
        run.say(f"\n[monitor] alive, gpu util {run.random.randrange(95, 101)}%, mem 22.{run.random.randrange(9)} GiB\n")
    return run.end("hang_with_heartbeat", after=60, stalls=[stall])


def same_step_redrawn(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    stall = standstill(run, run.t)
    for _ in range(80):
        run.quiet(30)
        run.draw()
    return run.end("same_step_redrawn", after=60, stalls=[stall])


def hang_after_resume(seed: int, trainer: type[Trainer]) -> MadeTrace:
    """Hangs while it still repeats steps."""
    run = new_run(seed, trainer)
    run.load()
    run.train(int(run.total * 0.45))
    run.crash(back_to=int(run.total * 0.3))
    run.train(int(run.total * 0.05))
    return run.end("hang_after_resume", after=45 * MINUTE, stalls=[standstill(run, run.t)])


def hang_while_saving(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    run.save(3 * MINUTE)
    run.train(run.total // 10)
    onset = run.t
    run.say(run.trainer.save(run))
    return run.end("hang_while_saving", after=45 * MINUTE, stalls=[too_long_a_pause(onset)])


def hang_while_sampling(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    onset = run.t
    run.sample(2 * MINUTE, until=3)
    return run.end("hang_while_sampling", after=45 * MINUTE, stalls=[too_long_a_pause(onset)])


def evaluation_loop(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    onset = run.t
    for _ in range(30):
        run.evaluate(1.5 * MINUTE)
    return run.end("evaluation_loop", after=60, stalls=[too_long_a_pause(onset)])


def save_and_sample_loop(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    onset = run.t
    for _ in range(20):
        run.save(0.8 * MINUTE)
        run.sample(1.6 * MINUTE)
    return run.end("save_and_sample_loop", after=60, stalls=[too_long_a_pause(onset)])


def slowing(run: Run, name: str, slowness: Callable[[float], float]) -> MadeTrace:
    some_way(run)
    onset = run.t
    run.train_for(70 * MINUTE, slowness)
    return run.end(name, after=10, stalls=[slow_down(run, onset)])


def slow_down(run: Run, onset: float) -> Stall:
    line = run.trainer.every * run.step_seconds
    late = 2 * line if line > MINUTE else 0.0  # rare lines tell of it later
    return Stall(onset=onset, flag_after=onset, flag_by=run.eta_fails_at(onset) + 25 * MINUTE + POLL + late)


def slows_evenly(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=2.5)
    minutes = run.random.uniform(18, 36)
    return slowing(run, "slows_evenly", lambda trained: 1 + trained / (minutes * MINUTE))


def slows_by_doubling(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=2.5, wobble=0.15)
    minutes = run.random.uniform(15, 28)
    return slowing(run, "slows_by_doubling", lambda trained: 2 ** min(3.0, trained / (minutes * MINUTE)))


def slows_with_saves(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=2.5)
    some_way(run)
    onset = run.t
    began = run.trained
    for _ in range(6):
        run.train_for(10 * MINUTE, lambda _: 1 + (run.trained - began) / (20 * MINUTE))
        run.save(45)
    return run.end("slows_with_saves", after=10, stalls=[slow_down(run, onset)])


def eta_stands_still(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=2.0)
    some_way(run)
    onset = run.t
    left = (run.total - run.done) * run.step_seconds
    level = min(left, 70 * MINUTE)
    end = onset + 75 * MINUTE
    while run.t < end:
        wanted = level / (run.total - run.done)
        run.train(1, constantly(max(1.0, wanted / run.step_seconds)))
    return run.end("eta_stands_still", after=10, stalls=[slow_down(run, onset)])


def collapses(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    onset = run.t
    factor = run.random.uniform(6.2, 14)
    run.train_for(50 * MINUTE, lambda _: factor)
    stall = Stall(onset=onset, flag_after=onset, flag_by=onset + 20 * MINUTE + POLL)
    return run.end("collapses", after=10, stalls=[stall])


def first_step_never_comes(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.load(4 * MINUTE)
    stall = Stall(onset=run.t, flag_after=run.t + 8 * MINUTE, flag_by=run.t + 27 * MINUTE)
    return run.end("first_step_never_comes", after=55 * MINUTE, stalls=[stall])


def download_hangs(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.say("Downloading model files\n")
    run.download(10 * MINUTE)
    run.download(10 * MINUTE, until=0.4, label="model-00002-of-00002.safetensors")
    stall = Stall(onset=run.t, flag_after=run.t, flag_by=run.t + 22 * MINUTE)
    return run.end("download_hangs", after=55 * MINUTE, stalls=[stall])


def caching_hangs_with_heartbeat(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    run.say("Running 1 job\n")
    run.cache(10 * MINUTE, until=0.6)
    stall = Stall(onset=run.t, flag_after=run.t, flag_by=run.t + 22 * MINUTE)
    for _ in range(100):
        run.quiet(30)
        run.say(f"\n[monitor] alive, gpu util {run.random.randrange(9)}%\n")
    return run.end("caching_hangs_with_heartbeat", after=60, stalls=[stall])


def crash_loop(seed: int, trainer: type[Trainer]) -> MadeTrace:
    """Starts again and again from the same checkpoint and never gets further."""
    run = new_run(seed, trainer)
    run.load()
    run.train(int(run.total * 0.4))
    onset = run.t
    for _ in range(30):
        run.crash(back_to=int(run.total * 0.35), loading=70)
        run.train(int(run.total * 0.01))
    stall = Stall(onset=onset, flag_after=onset + 8 * MINUTE, flag_by=onset + 45 * MINUTE)
    return run.end("crash_loop", after=60, stalls=[stall])


def cleared(run: Run, stall: Stall, resumes_at: float, *, polls: int) -> Stall:
    line = max(run.trainer.every * run.step_seconds, run.trainer.redraw)
    clears_by = resumes_at + polls * POLL + 2 * max(run.step_seconds, line)
    return Stall(
        onset=stall.onset,
        flag_after=stall.flag_after,
        flag_by=stall.flag_by,
        resumes_at=resumes_at,
        clears_by=clears_by,
    )


def stands_and_goes_on(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    stall = standstill(run, run.t)
    run.quiet(stall.flag_by - run.t + 3 * MINUTE)
    return run.finish("stands_and_goes_on", stalls=[cleared(run, stall, run.t, polls=3)])


def long_save_and_goes_on(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    stall = too_long_a_pause(run.t)
    run.save(21.5 * MINUTE)
    return run.finish("long_save_and_goes_on", stalls=[cleared(run, stall, run.t, polls=3)])


def crawls_and_goes_on(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer)
    some_way(run)
    onset = run.t
    run.train_for(17 * MINUTE, lambda _: 9.0)
    stall = Stall(onset=onset, flag_after=onset, flag_by=onset + 20 * MINUTE + POLL)
    return run.finish("crawls_and_goes_on", stalls=[cleared(run, stall, run.t, polls=6)])


def two_stalls(seed: int, trainer: type[Trainer]) -> MadeTrace:
    run = new_run(seed, trainer, hours=2)
    run.load()
    run.train(int(run.total * 0.25))
    first = standstill(run, run.t)
    run.quiet(15 * MINUTE)
    first = cleared(run, first, run.t, polls=3)
    run.train(int(run.total * 0.25))
    return run.end("two_stalls", after=45 * MINUTE, stalls=[first, standstill(run, run.t)])


STALLED: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        hang,
        hang_early,
        hang_with_unknown_total,
        hang_with_heartbeat,
        same_step_redrawn,
        hang_after_resume,
        hang_while_saving,
        hang_while_sampling,
        evaluation_loop,
        save_and_sample_loop,
        slows_evenly,
        slows_by_doubling,
        slows_with_saves,
        eta_stands_still,
        collapses,
        first_step_never_comes,
        download_hangs,
        caching_hangs_with_heartbeat,
        crash_loop,
        stands_and_goes_on,
        long_save_and_goes_on,
        crawls_and_goes_on,
        two_stalls,
    )
}
