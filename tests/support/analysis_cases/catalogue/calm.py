"""Healthy runs that look odd, and trouble that is easily overlooked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.catalogue.memory import oom_text
from tests.support.analysis_cases.catalogue.workers import no_workers
from tests.support.analysis_cases.configs import ABSENT, AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import (
    case_of,
    critical,
    fitting_batch,
    further_memory,
    last_memory,
    log_error,
    warning,
)
from tests.support.analysis_cases.machines import A6000, H100, MAC, RTX_3090, RTX_4090, SPARK
from tests.support.analysis_cases.simulation import Simulation


def _calm(trainer: str, settings: dict[str, Any], machine: Any = RTX_4090, *, pace: float = 2.0) -> Simulation:
    run = Simulation(trainer, machine, settings)
    run.load(card=10.0)
    run.train(600, card=0.733 * machine.card_gb[0], pace=pace)
    run.finish()
    return run


# ---------------------------------------------------------------- nothing to advise


@case
def every_fact_is_known() -> Case:
    run = _calm(AI_TOOLKIT, {"workers": 2})
    run.info.update(
        {
            "price_per_hour_usd": "0.44",
            "cpu_cores": "8",
            "gpu_rated_clock_mhz": "2520",
            "gpu_rated_power_watts": "450",
            "shm_size_gb": "0.0625",
            "dataset_images": "40",
            "dataset_bytes": "310000000",
            "transfer_seconds": "12",
            "provisioning_seconds": "540",
            "model_bytes": "23800000000",
            "model_load_seconds": "48",
            "utc_offset_seconds": "7200",
            "clock_offset_seconds": "-3.1",
        }
    )
    return case_of(
        run, "healthy_all_facts", health="Good", why="Slow provisioning and small shared memory hurt nothing."
    )


@each(
    fp32=(AI_TOOLKIT, {"dtype": ABSENT, "quantize": False}),
    fp16=(KOHYA, {"dtype": "fp16"}),
    seldom_saved=(AI_TOOLKIT, {"save_every": 100_000, "sample_every": 100_000}),
    never_saved=(KOHYA, {"save_every": ABSENT, "sample_every": ABSENT}),
    many_workers=(KOHYA, {"workers": 16}),
    no_workers=(AI_TOOLKIT, {"workers": 0, "cache": False}),
    ema=(AI_TOOLKIT, {"ema": True}),
    high_rate=(AI_TOOLKIT, {"lr": "1e-3"}),
    large_batch=(KOHYA, {"batch": 8}),
    prodigy=(KOHYA, {"optimizer": "Prodigy", "lr": 1.0}),
)
def settings_that_hurt_nothing(given: tuple[str, dict[str, Any]]) -> Case:
    trainer, settings = given
    run = _calm(trainer, settings)
    return case_of(run, "healthy_settings", health="Good", why="No row of the tables holds.")


@case
def long_run_that_is_seldom_saved() -> Case:
    run = _calm(AI_TOOLKIT, {"save_every": 100_000}, pace=24.0)
    run.info["price_per_hour_usd"] = "1.90"
    return case_of(run, "healthy_long", health="Good", why="Four hours without a checkpoint, and all went well.")


@case
def cold_start_of_a_short_run() -> Case:
    run = Simulation(KOHYA, RTX_4090, steps=60)
    run.load(card=10.0, seconds=400)
    run.train(60, card=17.6)
    run.finish()
    return case_of(run, "healthy_cold", health="Good", why="Loading takes most of the time; the disk was not measured.")


@case
def high_only_while_loading() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0, main=44.0)
    run.train(600, card=17.6, main=12.0)
    run.finish()
    return case_of(run, "healthy_loading", health="Good", why="System memory at 75 % while the weights were read.")


@each(stored=lambda step: None, late=lambda step: 0.31)
def single_gap_in_the_losses(loss: Any) -> Case:
    run = _calm(AI_TOOLKIT, {})
    for place in (10, 11, 12, 13, 30):
        run.rows["StepMetric"][place]["loss"] = loss(place)
    return case_of(run, "healthy_loss_gap", health="Good", why="Losses are missing in the middle, not at the end.")


@case
def no_config_values_but_the_least() -> Case:
    run = _calm(
        AI_TOOLKIT, dict.fromkeys(("batch", "checkpointing", "workers", "save_every", "ema", "cache", "dtype"), ABSENT)
    )
    return case_of(run, "healthy_defaults", health="Good", why="Everything is at its default.")


# ---------------------------------------------------------------- easily overlooked


@case
def metal_gives_up_below_the_whole_memory() -> Case:
    run = Simulation(AI_TOOLKIT, MAC, {"batch": 4})
    run.load(card=14.0)
    run.train(100, card=36.0)
    run.overflow(card=38.0)
    run.fail(
        "RuntimeError: MPS backend out of memory (MPS allocated: 44.40 GB, other allocations: 2.10 GB, max allowed: "
        "46.90 GB). Tried to allocate 768.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"
    )
    return case_of(
        run,
        "oom_mps_low",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), min=1, max=3)],
        may=further_memory(run, "unified"),
        errors=[log_error("oom", "MPS backend out of memory", at=run.now, memory=last_memory(run))],
        why="80 % of the memory is all that Metal gives.",
    )


@case
def leak_at_samplings_that_overflows_in_one() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"sample_every": 60}, steps=2000)
    run.load(card=12.0)
    for place in range(11):
        run.train(60, card=14.5 + 0.75 * place)
        run.sample(12, card=15.5 + 0.75 * place)
    run.train(60, card=14.5 + 0.75 * 11)
    run.begin_sampling()
    run.overflow(card=23.7)
    run.fail(oom_text())
    return case_of(
        run,
        "leak_sampling_in_sampling",
        health="Critical",
        first=[
            critical(path_of(AI_TOOLKIT, "sample_every"), min=120),
            critical(path_of(AI_TOOLKIT, "disable_sampling"), eq=True),
        ],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now, memory=last_memory(run))],
        why="Training itself was at 95 % by then: the samplings leak.",
    )


@case
def leak_of_unified_memory() -> Case:
    run = Simulation(KOHYA, SPARK, {"batch": 2}, steps=3000)
    run.load(card=30.0)
    run.train(800, card=40.0, main=lambda progress: 8.0 + 62.5 * progress)
    run.be_killed()
    return case_of(
        run,
        "leak_unified",
        health="Critical",
        first=[critical("environment.trainer"), critical(path_of(KOHYA, "save_every"), max=249)],
        may=further_memory(run, "unified"),
        why="The main process grows by half of the memory.",
    )


@case
def swap_grows_at_80_percent() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"workers": 4})
    run.load(card=10.0)
    run.train(600, card=17.6, worker_count=4, workers=41.0, swap=lambda progress: 4.5 * progress)
    run.finish()
    return case_of(
        run,
        "swap_low_share",
        health="Warning",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        why="Swap that grew by 4.5 GB is the same trouble as a full pool.",
    )


@each(
    warning_only=({"warning": 0.93}, 0.915, "Good", None),
    critical_only=({"critical": 0.80}, 0.83, "Critical", None),
    critical_only_high=({"critical": 0.86}, 0.88, "Critical", "warning"),
)
def one_threshold_alone(given: tuple[dict[str, float], float, str, str | None]) -> Case:
    settings, share, health, severity = given
    run = Simulation(AI_TOOLKIT, RTX_4090, {**settings, "checkpointing": False})
    run.load(card=9.0)
    run.train(600, card=24.0 * share)
    run.finish()
    advice = {**warning(path_of(AI_TOOLKIT, "checkpointing"), eq=True), "severity": [severity]}
    return case_of(
        run,
        "threshold_alone",
        health=health,
        first=None if severity is None else [advice],
        may=[] if severity is None else further_memory(run, "gpu"),
        why=f"{share:.0%} with {settings}.",
    )


@case
def several_small_resolutions() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"resolution": [256, 384, 512]})
    run.load(card=11.0)
    run.train(120, card=22.9)
    run.overflow(card=23.7)
    run.fail(oom_text(tried="0.50 GiB"))
    return case_of(
        run,
        "resolution_small",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "resolution"), min=64, max=511)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now)],
        why="Several resolutions: the largest can go lower.",
    )


@case
def divergence_in_the_log_alone() -> Case:
    run = Simulation(KOHYA, RTX_3090, {"lr": 0.002}, steps=900)
    run.load(card=10.0)
    run.train(900, card=17.6, loss=lambda progress: 0.3 if progress < 0.5 else 0.3 + 1.4 * (progress - 0.5))
    run.finish()
    run.rows["StepMetric"].clear()
    return case_of(
        run,
        "diverged_log",
        health="Critical",
        first=[critical(path_of(KOHYA, "lr"), max=0.001)],
        may=[{"severity": ["warning"], "path": ["*lr*", "max_grad_norm", "optimizer_*"]}],
        is_spoilt=True,
        why="Sixty bars of the log, and no rows.",
    )


@each(float16=(AI_TOOLKIT, "float16"), half=(AI_TOOLKIT, "fp16"))
def nan_of_half_precision(given: tuple[str, str]) -> Case:
    trainer, dtype = given
    run = Simulation(trainer, RTX_4090, {"dtype": dtype})
    run.load(card=10.0)
    run.train(100, card=17.6)
    run.log.text += "loss is nan\n" * 40
    run.train(500, loss=lambda progress: 0.0, gradient=lambda progress: 0.0)
    run.finish()
    return case_of(
        run,
        "nan_half",
        health="Critical",
        first=[critical(path_of(trainer, "dtype"), **{"in": ["bf16", "bfloat16", "fp32", "float32"]})],
        may=[{"severity": ["warning"], "path": ["config.process.train.*"]}],
        errors=[log_error("nan", "nan")],
        is_spoilt=True,
        why="fp16 has two names.",
    )


@case
def optimizer_that_was_not_saved() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(250, card=17.6)
    run.save()
    run.log.text += "Could not save optimizer\n"
    run.train(350, card=17.6)
    run.finish()
    return case_of(
        run,
        "save_lost",
        health="Good",
        may=[{"severity": ["warning"], "path": ["machine.disk*", "config.process.save.*"]}],
        errors=[log_error("save", "Could not save optimizer")],
        why="A failed save lost work; the run itself is fine.",
    )


@case
def local_times_without_an_offset() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"batch": 3}, utc_offset=32400.0)
    run.load(card=9.0)
    run.train(100, card=21.6)
    run.overflow(card=23.7)
    run.fail(oom_text())
    del run.info["utc_offset_seconds"]
    return case_of(
        run,
        "batch_no_offset",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), min=1, max=2)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now, memory=last_memory(run))],
        why="The traceback has no time of its own, and the log's zone is not known.",
    )


@each(h100=(H100, 28.0, 48), a6000=(A6000, 14.0, 16), a6000_small=(A6000, 10.5, 12))
def smaller_card_would_do(given: tuple[Any, float, int]) -> Case:
    machine, level, _ = given
    run = Simulation(KOHYA, machine, {"batch": 2, "checkpointing": False})
    run.info["price_per_hour_usd"] = "2.10"
    run.load(card=8.0)
    run.train(600, card=level)
    run.finish()
    return case_of(run, "smaller_card", health="Good", why="The label works out the smallest card that is enough.")


@case
def kills_and_page_cache_in_a_container() -> Case:
    machine = replace(RTX_4090, memory_gb=251.0, idle_gb=30.0, page_cache_gb=220.0, limit_gb=48.0)
    run = Simulation(AI_TOOLKIT, machine, {"batch": 2})
    run.load(card=10.0)
    run.train(300, card=17.6)
    run.be_killed()
    return case_of(
        run,
        "signal_9_container",
        health="Critical",
        first=[critical("machine.host")],
        must_not_say=(r"\boom\b", "out of memory"),
        why="6 of the container's 48 GB were in use; the host is full of page cache.",
    )


@case
def automatic_batch_of_unified_memory() -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"batch": 2, "ceiling": 16, "auto_batch": True})
    run.load(card=30.0)
    run.train(200, card=44.0)
    run.change_batch(4)
    run.train(200, card=58.0)
    run.change_batch(16)
    run.train(20, card=104.0)
    run.be_killed()
    most = max(4, fitting_batch(run, need=run.peak_system, batch=16))
    return case_of(
        run,
        "batch_adjust_unified",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "ceiling"), min=1, max=most)],
        may=further_memory(run, "unified"),
        why="Sixteen filled the memory within twenty steps.",
    )
