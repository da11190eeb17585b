"""Healthy and stalled runs with samples of their machine, for the early verdict of the stall watch.

Healthy ones rest for as long as the definitions allow (6 minutes unannounced, 8 announced or before the first step), or
longer while their machine shows something. Stalled ones either prove it or do not: the second must wait for the window.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.watching import machine_maker as does
from tests.support.watching.machine_maker import Activity, SampledRun, SampledTrace
from tests.support.watching.trace_maker import (
    ALL_TRAINERS,
    BAR_TRAINERS,
    MINUTE,
    POLL,
    HuggingFace,
    HuggingFaceLines,
    Plain,
    Stall,
    Trainer,
)
from tests.support.watching.trace_scenarios import cleared, standstill, too_long_a_pause

SampledScenario = Callable[[int], SampledTrace]

LATE_SAMPLES = 55.0  # a watcher gets them at most this much later
BY_PROOF = 6 * MINUTE + LATE_SAMPLES + 2 * POLL
PAUSE_BY_PROOF = 8 * MINUTE + LATE_SAMPLES + 2 * POLL


def new_run(
    seed: int,
    *,
    trainers: tuple[type[Trainer], ...] = ALL_TRAINERS,
    step: float = 1.9,
    hours: float = 1.0,
    gpus: int = 1,
    processes: int = 5,
) -> SampledRun:
    spread = random.Random(seed * 31 + 5)
    trainer = spread.choice(trainers)
    step_seconds = step * spread.uniform(0.7, 1.4)
    total = max(60, int(hours * spread.uniform(0.9, 1.2) * 3600 / step_seconds) // 20 * 20)
    run = SampledRun(trainer(), seed=seed, total=total, step_seconds=step_seconds, gpus=gpus, processes=processes)
    run.trainer.every = min(run.trainer.every, max(1, int(40 / step_seconds)))
    return run


def some_way(run: SampledRun) -> None:
    run.load()
    run.train(int(run.total * run.random.uniform(0.25, 0.4)))


# ---- healthy ---------------------------------------------------------------------------------------------------


def rests_unannounced(activity: Activity, *minutes: float, **of_run: int) -> SampledScenario:
    def scenario(seed: int) -> SampledTrace:
        run = new_run(seed, **of_run)  # type: ignore[arg-type]
        some_way(run)
        for each in minutes:
            run.rest(each * MINUTE, activity)
            run.train(run.total // 8)
        return run.sampled(run.finish("rests"))

    return scenario


def pauses_announced(activity: Activity, minutes: float) -> SampledScenario:
    """Saves, samples and evaluates for longer than usual, each while the machine does this."""

    def scenario(seed: int) -> SampledTrace:
        run = new_run(seed, trainers=(Trainer, HuggingFace) if seed % 2 else (HuggingFace,))
        some_way(run)
        for pause in (run.save, run.evaluate if seed % 2 == 0 else run.sample):
            with run.doing(activity):
                pause(minutes * MINUTE)
            run.train(run.total // 8)
        return run.sampled(run.finish("pauses"))

    return scenario


def starts_late(activity: Activity, minutes: float) -> SampledScenario:
    def scenario(seed: int) -> SampledTrace:
        run = new_run(seed)
        with run.doing(activity):
            run.load(minutes * MINUTE)
        return run.sampled(run.finish("starts_late"))

    return scenario


def waits_for_rollouts(seed: int) -> SampledTrace:
    """Every line comes after minutes in which another machine works."""
    run = new_run(seed, trainers=(Plain,), step=20, hours=1.5)
    run.trainer.every = 10
    run.load()
    while run.done < run.total - 20:
        run.train(9)
        run.rest(run.random.uniform(3, 5.5) * MINUTE, does.POLLS_A_SERVICE)
        run.train(1)
    return run.sampled(run.finish("waits_for_rollouts"))


def rare_lines(seed: int) -> SampledTrace:
    run = new_run(seed, hours=1.6)
    run.trainer = HuggingFaceLines() if seed % 2 else Plain()
    run.trainer.every = int(run.random.uniform(9, 13) * MINUTE / run.step_seconds)
    run.load(60)
    return run.sampled(run.finish("rare_lines"))


def sleeps_at_the_end(seed: int) -> SampledTrace:
    run = new_run(seed)
    run.load()
    run.train(int(run.total * 0.985))
    run.rest(25 * MINUTE, does.ASLEEP)
    made = run.finish("sleeps_at_the_end")
    return run.sampled(made)


def rests_longer_and_longer(seed: int) -> SampledTrace:
    """Learns that this run rests: twice the longest rest that was followed by steps is allowed."""
    run = new_run(seed, trainers=BAR_TRAINERS, hours=1.2)
    some_way(run)
    for minutes in (4.0, 6.0, 8.5):
        run.rest(minutes * MINUTE, does.ASLEEP)
        run.train(run.total // 8)
    return run.sampled(run.finish("rests_longer_and_longer"))


HEALTHY: dict[str, SampledScenario] = {
    "sleeps_for_a_rate_limit": rests_unannounced(does.ASLEEP, 5.0, 5.9),
    "sleeps_at_a_barrier": rests_unannounced(does.HEARTBEAT, 5.9, 5.9),
    "polls_a_service": rests_unannounced(does.POLLS_A_SERVICE, 5.9, 5.9),
    "sleeps_on_a_cpu_machine": rests_unannounced(does.ASLEEP, 5.9, gpus=0),
    "waits_for_a_remote_disk": rests_unannounced(does.WAITS_FOR_DISK, 9.4, 9.4),
    "is_suspended": rests_unannounced(does.SUSPENDED, 9.4, 9.0),
    "computes_on_the_gpu_alone": rests_unannounced(does.COMPUTES_ON_GPU, 9.4),
    "is_fed_slowly": rests_unannounced(does.FEEDS_SLOWLY, 9.4),
    "starts_its_workers": rests_unannounced(does.STARTS_WORKERS, 9.4),
    "fills_its_memory": rests_unannounced(does.FILLS_MEMORY, 9.4),
    "gets_little_data": rests_unannounced(does.TRICKLES, 9.4),
    "gpu_gives_no_answer": rests_unannounced(does.BLIND_GPU, 9.4),
    "io_is_not_readable": rests_unannounced(does.BLIND_IO, 9.4),
    "older_machine_without_states": rests_unannounced(does.BLIND_STATES, 9.4),
    "is_not_sampled": rests_unannounced(does.NOT_SAMPLED, 9.4),
    "saves_to_a_remote_disk": pauses_announced(does.WRITES_REMOTELY, 12.0),
    "saves_for_long": pauses_announced(does.WRITES, 12.0),
    "asks_a_remote_judge": pauses_announced(does.POLLS_A_SERVICE, 7.9),
    "pauses_asleep": pauses_announced(does.ASLEEP, 7.8),
    "compiles_first": starts_late(does.COMPILES, 13.0),
    "queues_for_its_model": starts_late(does.ASLEEP, 7.8),
    "downloads_silently": starts_late(does.DOWNLOADS, 13.0),
    "waits_for_rollouts": waits_for_rollouts,
    "rare_lines": rare_lines,
    "sleeps_at_the_end": sleeps_at_the_end,
    "rests_longer_and_longer": rests_longer_and_longer,
}


# ---- stalled ---------------------------------------------------------------------------------------------------


def sooner(stall: Stall, by: float) -> Stall:
    """The same stall, which the machine proves: due within `by` seconds."""
    return Stall(
        onset=stall.onset,
        flag_after=stall.onset + (6 * MINUTE if by == BY_PROOF else 8 * MINUTE),
        flag_by=min(stall.flag_by, stall.onset + by),
        resumes_at=stall.resumes_at,
        clears_by=stall.clears_by,
    )


def hangs(
    activity: Activity, *, is_proven: bool, step: float = 1.9, gpus: int = 1, processes: int = 5
) -> SampledScenario:
    def scenario(seed: int) -> SampledTrace:
        run = new_run(seed, step=step, gpus=gpus, processes=processes, hours=1.0 if step < 30 else 5.0)
        some_way(run)
        stall = standstill(run, run.t)
        run.rest(55 * MINUTE, activity)
        return run.sampled(run.end("hangs", after=0, stalls=[sooner(stall, BY_PROOF) if is_proven else stall]))

    return scenario


def prints_on(seed: int) -> SampledTrace:
    """The same step is redrawn and a heartbeat printed, by a thread that does nothing else."""
    run = new_run(seed, trainers=BAR_TRAINERS)
    some_way(run)
    stall = sooner(standstill(run, run.t), BY_PROOF)
    with run.doing(does.HEARTBEAT):
        for _ in range(100):
            run.quiet(30)
            run.say(f"\n[monitor] alive, mem 22.{run.random.randrange(9)} GiB\n")
            run.draw()
    return run.sampled(run.end("prints_on", after=0, stalls=[stall]))


def pause_hangs(activity: Activity, *, is_proven: bool) -> SampledScenario:
    def scenario(seed: int) -> SampledTrace:
        run = new_run(seed, trainers=(Trainer, HuggingFace))
        some_way(run)
        stall = too_long_a_pause(run.t)
        if seed % 2:
            run.say(run.trainer.save(run))
        else:
            with run.doing(does.COMPUTES_ON_GPU):
                run.sample(20, images=8, until=3)
        run.rest(50 * MINUTE, activity)
        return run.sampled(
            run.end("pause_hangs", after=0, stalls=[sooner(stall, PAUSE_BY_PROOF + 20) if is_proven else stall])
        )

    return scenario


def first_step_never_comes(seed: int) -> SampledTrace:
    run = new_run(seed)
    run.load(2 * MINUTE)
    stall = Stall(onset=run.t, flag_after=run.t + 8 * MINUTE, flag_by=run.t + 27 * MINUTE)
    run.rest(55 * MINUTE, does.ASLEEP)
    return run.sampled(run.end("first_step", after=0, stalls=[sooner(stall, PAUSE_BY_PROOF)]))


def download_hangs(seed: int) -> SampledTrace:
    run = new_run(seed)
    run.say("Downloading model files\n")
    with run.doing(does.DOWNLOADS):
        run.download(10 * MINUTE, until=0.4)
    stall = Stall(onset=run.t, flag_after=run.t, flag_by=run.t + 22 * MINUTE)
    run.rest(55 * MINUTE, does.ASLEEP)
    return run.sampled(run.end("download_hangs", after=0, stalls=[sooner(stall, PAUSE_BY_PROOF)]))


def hangs_after_an_error(seed: int) -> SampledTrace:
    run = new_run(seed)
    some_way(run)
    stall = standstill(run, run.t)
    run.say('\nTraceback (most recent call last):\n  File "train.py", line 812, in <module>\nRuntimeError: no answer\n')
    run.rest(55 * MINUTE, does.ASLEEP)
    return run.sampled(run.end("hangs_after_an_error", after=0, stalls=[sooner(stall, BY_PROOF)]))


def goes_on(seed: int) -> SampledTrace:
    run = new_run(seed, trainers=BAR_TRAINERS)
    some_way(run)
    stall = sooner(standstill(run, run.t), BY_PROOF)
    run.rest(14 * MINUTE, does.ASLEEP)
    return run.sampled(run.finish("goes_on", stalls=[cleared(run, stall, run.t, polls=3)]))


def works_again_without_a_step(seed: int) -> SampledTrace:
    """The early flag is withdrawn when the machine works again: by its rare lines the run has long to go."""
    run = new_run(seed, trainers=(Plain,), hours=3)
    run.trainer.every = int(9 * MINUTE / run.step_seconds)
    some_way(run)
    onset = run.t
    run.rest(8.5 * MINUTE, does.ASLEEP)
    working = run.t
    early = Stall(
        onset=onset,
        flag_after=onset + 6 * MINUTE,
        flag_by=onset + BY_PROOF,
        resumes_at=working,
        clears_by=working + LATE_SAMPLES + 4 * POLL,
    )
    run.rest(5 * MINUTE, does.COMPUTES_ON_GPU)
    return run.sampled(run.finish("works_again_without_a_step", stalls=[early]))


def tries_again_and_again(seed: int) -> SampledTrace:
    run = new_run(seed, trainers=BAR_TRAINERS)
    some_way(run)
    for _ in range(8):
        run.rest(7.5 * MINUTE, does.ASLEEP)
        run.rest(1.9 * MINUTE, does.SPINS_ON_CPU)
    return run.sampled(run.end("tries_again_and_again", after=0))


PROVEN: dict[str, SampledScenario] = {
    "sleeps_for_ever": hangs(does.ASLEEP, is_proven=True),
    "sleeps_with_heartbeat": hangs(does.HEARTBEAT, is_proven=True),
    "polls_for_ever": hangs(does.POLLS_A_SERVICE, is_proven=True),
    "workers_of_a_cpu_machine_deadlock": hangs(does.ASLEEP, is_proven=True, gpus=0, processes=17),
    "slow_steps_end": hangs(does.ASLEEP, is_proven=True, step=55.0),
    "prints_on": prints_on,
    "pause_sleeps_for_ever": pause_hangs(does.ASLEEP, is_proven=True),
    "pause_sleeps_with_heartbeat": pause_hangs(does.HEARTBEAT, is_proven=True),
    "first_step_never_comes": first_step_never_comes,
    "download_hangs": download_hangs,
    "hangs_after_an_error": hangs_after_an_error,
    "goes_on": goes_on,
    "works_again_without_a_step": works_again_without_a_step,
}
"""Stalls that the samples prove."""

UNPROVEN: dict[str, SampledScenario] = {
    "spins_on_the_gpu": hangs(does.SPINS_ON_GPU, is_proven=False),
    "spins_on_the_cpu": hangs(does.SPINS_ON_CPU, is_proven=False),
    "waits_for_a_disk_for_ever": hangs(does.WAITS_FOR_DISK, is_proven=False),
    "stays_suspended": hangs(does.SUSPENDED, is_proven=False),
    "older_machine_without_states": hangs(does.BLIND_STATES, is_proven=False),
    "gpu_gives_no_answer": hangs(does.BLIND_GPU, is_proven=False),
    "is_not_sampled": hangs(does.NOT_SAMPLED, is_proven=False),
    "pause_waits_for_a_disk": pause_hangs(does.WAITS_FOR_DISK, is_proven=False),
}
"""Stalls of which the samples prove nothing: the window decides, as without samples."""
