"""Wasted time: a starved card, sampling and saving, throttling, slow disks and networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.catalogue.workers import no_workers
from tests.support.analysis_cases.configs import ABSENT, AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import Want, case_of, further_memory, warning
from tests.support.analysis_cases.machines import RTX_3090, RTX_4090, SPARK
from tests.support.analysis_cases.simulation import Simulation

_LOADING: list[Want] = [
    {
        "severity": ["warning"],
        "path": ["config.process.datasets*", "*workers", "cache_*", "machine.disk*", "machine.cpu*"],
    }
]


def waits(sample: int) -> float:
    """Return the use of a card that waits in six samples of ten."""
    return 95.0 if sample % 10 < 4 else 3.0


def trained(trainer: str, settings: dict[str, Any], machine: Any = RTX_4090, **how: Any) -> Simulation:
    run = Simulation(trainer, machine, settings)
    run.load(card=10.0 if machine.platform == "discrete" else 40.0)
    run.train(600, card=17.6 if machine.platform == "discrete" else 70.0, **how)
    return run


# ---------------------------------------------------------------- starved


@each(
    ai_toolkit=(AI_TOOLKIT, {"cache": False, "workers": 2}, RTX_4090),
    absent=(AI_TOOLKIT, {"cache": ABSENT, "workers": 0}, RTX_4090),
    kohya=(KOHYA, {"cache": False, "workers": 1}, RTX_3090),
    unified=(AI_TOOLKIT, {"cache": False, "workers": 2}, SPARK),
)
def starved_with_latents_to_cache(given: tuple[str, dict[str, Any], Any]) -> Case:
    trainer, settings, machine = given
    run = trained(trainer, settings, machine, busy=waits)
    run.finish()
    paths = [path_of(trainer, "cache"), "config.process[0].datasets[0].cache_latents", "cache_latents_to_disk"]
    return case_of(
        run,
        "starved_cache",
        health="Warning",
        first=[{"severity": ["warning"], "path": paths, "value": {"eq": True}}],
        may=_LOADING,
        why="The card waits in 60 % of the samples; latents are not cached.",
    )


@each(
    cached=(AI_TOOLKIT, {"workers": 0}, 1),
    cached_in_memory=(AI_TOOLKIT, {"cache": ABSENT, "datasets[0].cache_latents": True, "workers": 1}, 2),
    cached_on_disk=(KOHYA, {"cache": ABSENT, "cache_latents_to_disk": True, "workers": 1}, 2),
    random_crop=(KOHYA, {"cache": False, "random_crop": True, "workers": 1}, 2),
    color_aug=(KOHYA, {"cache": False, "color_aug": True, "workers": 2}, 3),
)
def starved_without_latents_to_cache(given: tuple[str, dict[str, Any], int]) -> Case:
    trainer, settings, workers = given
    run = trained(trainer, settings, busy=waits)
    run.finish()
    return case_of(
        run,
        "starved_workers",
        health="Warning",
        first=[warning(path_of(trainer, "workers"), min=workers)],
        may=_LOADING,
        must_not=[{"path": ["cache_latents*", "config.process[0].datasets[0].cache_latents*"], "value": {"eq": True}}],
        why="Latents are cached or cannot be: more workers.",
    )


@each(
    even=(lambda sample: 27.0 + sample % 5, 600),
    often_busy=(lambda sample: 2.0 if sample % 20 == 0 else 94.0, 600),
    unknown=(lambda sample: None, 600),
)
def card_that_is_not_starved(given: tuple[Callable[[int], Any], int]) -> Case:
    busy, steps = given
    run = Simulation(AI_TOOLKIT, RTX_4090, {"cache": False})
    run.load(card=10.0)
    run.train(steps, card=17.6, busy=lambda sample: 50.0)
    run.finish()
    for place, row in enumerate(run.rows["GpuSample"]):
        row["utilization_percent"] = busy(place)
    for place, row in enumerate(run.rows["MetricsSample"]):
        row["gpu_utilization_percent"] = busy(place)
    return case_of(run, "healthy_use", health="Good", why="Low but even use, or none known, is no starvation.")


@case
def few_idle_samples_prove_nothing() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"cache": False}, steps=200)
    run.load(card=10.0)
    run.train(200, card=17.6, busy=lambda sample: 2.0)
    run.finish()
    return case_of(run, "healthy_short", health="Good", why="There are fewer than 30 samples of training.")


@case
def card_that_waits_for_memory_is_not_starved() -> Case:
    run = trained(KOHYA, {"cache": False, "workers": 4}, busy=waits, worker_count=4, workers=51.7)
    run.finish()
    return case_of(
        run,
        "waits_for_memory",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        must_not=[{"path": path_of(KOHYA, "workers"), "value": {"min": 5}}],
        why="The system's memory is full: the card waits for that.",
    )


# ---------------------------------------------------------------- sampling and saving


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def sampling_takes_a_third(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090, {"sample_every": 50})
    run.load(card=10.0)
    for _ in range(12):
        run.train(50, card=17.6)
        run.sample(60)
    run.finish()
    first = [warning(path_of(trainer, "sample_every"), min=100)]
    if trainer == AI_TOOLKIT:
        first.append(warning(path_of(AI_TOOLKIT, "disable_sampling"), eq=True))
    return case_of(
        run,
        "sampling_often",
        health="Warning",
        first=first,
        may=[{"severity": ["warning"], "path": ["config.process.sample.*", "sample_*"]}],
        why="A minute of pictures after 100 s of training.",
    )


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def saving_takes_a_quarter(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090, {"save_every": 50})
    run.load(card=10.0)
    for _ in range(12):
        run.train(50, card=17.6)
        run.save(45)
    run.finish()
    return case_of(
        run,
        "saving_often",
        health="Warning",
        first=[warning(path_of(trainer, "save_every"), min=100)],
        may=[{"severity": ["warning"], "path": ["config.process.save.*", "save_*", "machine.disk"]}],
        why="45 s of saving after 100 s of training.",
    )


@case
def sampling_and_saving_by_the_time_they_take() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"sample_every": 50, "save_every": 50})
    run.load(card=10.0)
    for _ in range(12):
        run.train(50, card=17.6)
        run.save(45)
        run.sample(90)
    run.finish()
    sampling = [
        warning(path_of(AI_TOOLKIT, "sample_every"), min=100),
        warning(path_of(AI_TOOLKIT, "disable_sampling"), eq=True),
    ]
    return case_of(
        run,
        "sampling_and_saving",
        health="Warning",
        first=sampling,
        must_include=[[warning(path_of(AI_TOOLKIT, "save_every"), min=100)]],
        may=[{"severity": ["warning"], "path": ["config.process.sample.*", "config.process.save.*", "machine.disk"]}],
        why="Both waste 15 % or more; sampling takes twice as long.",
    )


@case
def memory_comes_before_lost_time() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"sample_every": 50, "checkpointing": False})
    run.load(card=10.0)
    for _ in range(12):
        run.train(50, card=21.0)
        run.sample(60, card=21.0)
    run.finish()
    return case_of(
        run,
        "high_and_sampling",
        health="Warning",
        first=[warning(path_of(AI_TOOLKIT, "checkpointing"), eq=True)],
        must_include=[
            [
                warning(path_of(AI_TOOLKIT, "sample_every"), min=100),
                warning(path_of(AI_TOOLKIT, "disable_sampling"), eq=True),
            ]
        ],
        may=[{**want, "severity": ["warning"]} for want in further_memory(run, "gpu")],
        why="Among warnings memory is first.",
    )


@case
def sampling_now_and_then_is_fine() -> Case:
    run = Simulation(KOHYA, RTX_4090)
    run.load(card=10.0)
    for _ in range(2):
        run.train(300, card=17.6)
        run.sample(20)
        run.save(10)
    run.finish()
    return case_of(run, "healthy_sampling", health="Good", why="Sampling takes 3 %, saving 1 %.")


# ---------------------------------------------------------------- throttled


def _slow(reason: str, clock: float, share: int) -> Callable[[int], tuple[str | None, float]]:
    return lambda sample: (reason, clock) if sample % 10 < share else (None, 2500.0)


@each(
    thermal=("sw_thermal", "machine.cooling", True),
    thermal_hw=("hw_thermal", "machine.cooling", False),
    power=("sw_power_cap", "machine.power_limit_watts", True),
    brake=("hw_power_brake", "machine.power_limit_watts", False),
)
def throttled(given: tuple[str, str, bool]) -> Case:
    reason, path, knows_clock = given
    run = trained(AI_TOOLKIT, {}, clock=_slow(reason, 1450.0, 4))
    run.finish()
    if knows_clock:
        run.info["gpu_rated_clock_mhz"] = "2520"
    return case_of(
        run,
        "throttled",
        health="Warning",
        first=[warning(path), warning("machine.host")],
        may=[{"severity": ["warning"], "path": "machine.*"}],
        why="40 % of the samples are throttled, at 58 % of the clock.",
    )


@each(fast=_slow("sw_power_cap", 2430.0, 9), seldom=_slow("sw_thermal", 1400.0, 1))
def throttled_without_a_loss(clock: Callable[[int], tuple[str | None, float]]) -> Case:
    run = trained(KOHYA, {}, clock=clock)
    run.finish()
    run.info["gpu_rated_clock_mhz"] = "2520"
    return case_of(run, "healthy_throttle", health="Good", why="The clock is near the rated one, or it happens seldom.")


# ---------------------------------------------------------------- disk and network


@each(slow=(9.0e9, 420, True), slow_but_short=(1.5e9, 30, False), fast_but_long=(120e9, 420, False))
def model_is_read_from_disk(given: tuple[float, int, bool]) -> Case:
    size, seconds, is_wasteful = given
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.info.update({"model_bytes": f"{size:.0f}", "model_load_seconds": str(seconds)})
    run.load(card=10.0, seconds=seconds)
    run.train(600, card=17.6)
    run.finish()
    return case_of(
        run,
        "slow_disk",
        health="Warning" if is_wasteful else "Good",
        first=[warning("machine.disk"), warning("machine.host")] if is_wasteful else None,
        may=[{"severity": ["warning"], "path": "machine.*"}] if is_wasteful else [],
        why="Below 100 MB/s and 15 % of the time count only together.",
    )


@each(slow=(1.2e9, 600, True), slow_but_short=(0.05e9, 30, False), fast_but_long=(40e9, 600, False))
def data_is_transferred(given: tuple[float, int, bool]) -> Case:
    size, seconds, is_wasteful = given
    run = trained(KOHYA, {})
    run.info.update({"dataset_bytes": f"{size:.0f}", "transfer_seconds": str(seconds)})
    run.finish()
    return case_of(
        run,
        "slow_transfer",
        health="Warning" if is_wasteful else "Good",
        first=[warning("machine.network"), warning("machine.host")] if is_wasteful else None,
        may=[{"severity": ["warning"], "path": "machine.*"}] if is_wasteful else [],
        why="Below 5 MB/s and 15 % of transfer and duration count only together.",
    )
