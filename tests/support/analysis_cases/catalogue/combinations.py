"""Several things at once: which comes first, and which pool the trouble is in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.catalogue.memory import oom_text
from tests.support.analysis_cases.catalogue.workers import no_workers
from tests.support.analysis_cases.configs import AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import (
    Want,
    case_of,
    critical,
    fitting_batch,
    further_memory,
    last_memory,
    log_error,
    warning,
)
from tests.support.analysis_cases.machines import CPU_SERVER, RTX_3090, RTX_4090, SPARK, TWO_3090
from tests.support.analysis_cases.simulation import Simulation

SKIPPED = (
    "\n\n################################################\n"
    "# OOM during training step, skipping batch 1/3 #\n"
    "################################################\n\n"
)
_SAVES: Want = {"severity": ["warning"], "path": ["config.process.save.*", "machine.disk*", "save_*"]}


# ---------------------------------------------------------------- which pool


@case
def card_overflows_while_workers_hold_system_memory() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 4, "workers": 6})
    run.load(card=9.0)
    run.train(150, card=21.8, worker_count=6, workers=30.0)
    run.overflow(card=23.7)
    run.fail(oom_text())
    return case_of(
        run,
        "batch_with_workers",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), min=1, max=3)],
        may=further_memory(run, "gpu"),
        must_not=[critical(path_of(AI_TOOLKIT, "workers"))],
        errors=[log_error("oom", "out of memory", at=run.now, memory=last_memory(run))],
        why="Workers hold half of the system's memory, which is at 62 %: the card is the trouble.",
    )


@case
def system_memory_kills_while_the_card_is_nearly_full() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"batch": 2, "workers": 6})
    run.load(card=9.0)
    run.train(300, card=22.3, worker_count=6, workers=lambda progress: 53.1 * progress)
    run.be_killed()
    return case_of(
        run,
        "workers_and_card",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        why="The kernel ended it for the system's memory; the card at 93 % comes later.",
    )


@case
def unified_memory_is_full_without_workers() -> Case:
    run = Simulation(KOHYA, SPARK, {"batch": 6})
    run.load(card=32.0)
    run.train(200, card=106.5)
    run.be_killed()
    return case_of(
        run,
        "killed_unified_batch",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), min=1, max=fitting_batch(run, need=run.peak_system, batch=6))],
        may=further_memory(run, "unified"),
        why="No workers: the batch is the first handle on the only pool.",
    )


@case
def memory_of_a_cpu_training_is_full() -> Case:
    run = Simulation(KOHYA, CPU_SERVER, {"batch": 4, "checkpointing": False})
    run.load(card=(), main=20.0)
    run.train(200, main=58.7)
    run.be_killed()
    return case_of(
        run,
        "killed_cpu",
        health="Critical",
        first=[critical("machine.memory_gb", min=63), critical(path_of(KOHYA, "batch"), min=1, max=3)],
        may=further_memory(run, "unified"),
        why="Whether the batch is a handle on a machine without a card is open: more memory always helps.",
    )


@case
def second_card_overflows() -> Case:
    run = Simulation(KOHYA, TWO_3090, {"batch": 3})
    run.load(card=[9.0, 9.0])
    run.cards = [19.0, 20.5]
    run.train(150)
    run.cards = [19.0, 23.7]
    run.event("oom_error", step=151, batch_size=3)
    run.fail(oom_text().replace("GPU 0", "GPU 1"))
    return case_of(
        run,
        "oom_second_card",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), min=1, max=2)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now, memory=last_memory(run))],
        why="The fullest card counts.",
    )


@each(much=("12.00 GiB", 12.0), more=("20480.00 MiB", 20.0))
def what_could_not_be_had_counts(given: tuple[str, float]) -> Case:
    tried, size = given
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 4, "resolution": 512})
    run.load(card=8.0)
    run.train(150, card=14.0)
    run.overflow()
    run.fail(oom_text(tried=tried, free="9.60 GiB"))
    return case_of(
        run,
        "batch_tried",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), min=1, max=fitting_batch(run, need=14.0 + size, batch=4))],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now)],
        why="14 GB were in use; the allocation that failed is part of the need.",
    )


@each(
    old="torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 24.00 GiB total capacity; "
    "22.90 GiB already allocated; 310.00 MiB free; 23.20 GiB reserved in total by PyTorch)",
    allocator='RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":995, '
    "please report a bug. memory allocation failed with OOM",
    plain="RuntimeError: CUDA error: out of memory",
)
def wordings_of_an_overflow(error: str) -> Case:
    run = Simulation(KOHYA, RTX_3090, {"batch": 2})
    run.load(card=9.0)
    run.train(150, card=20.0)
    run.wait(1)
    run.fail(error)
    run.rows["TrainingEvent"] = [row for row in run.rows["TrainingEvent"] if row["event_type"] != "oom_error"]
    return case_of(
        run,
        "oom_wording",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", "failed with OOM", "OutOfMemoryError", at=run.now)],
        why="Only the log has it.",
    )


@case
def killed_glued_to_a_bar() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"workers": 4})
    run.load(card=9.0)
    run.train(300, card=15.0, worker_count=4, workers=lambda progress: 52.8 * progress)
    run.log.text += "Killed\n"
    run.be_killed()
    for key in ("exit_code", "exit_signal"):
        del run.info[key]
    return case_of(
        run,
        "workers_killed_glued",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        errors=[log_error("killed", "Killed", at=run.now, memory=last_memory(run))],
        why="The shell's word stands behind the last bar; there is no exit code.",
    )


# ---------------------------------------------------------------- what comes first


@case
def what_ended_the_run_comes_before_an_overflow_that_was_survived() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 2})
    run.load(card=9.0)
    run.train(100, card=20.0)
    run.overflow(card=23.6)
    run.log.text += SKIPPED
    run.train(150, card=20.0)
    run.begin_saving()
    run.wait(4)
    run.fail("OSError: [Errno 28] No space left on device")
    return case_of(
        run,
        "disk_full_after_oom",
        health="Critical",
        first=[critical("machine.disk_gb"), critical(path_of(AI_TOOLKIT, "keep_saves"), max=3)],
        must_include=[[critical(path_of(AI_TOOLKIT, "batch"), eq=1)]],
        may=[*further_memory(run, "gpu"), _SAVES],
        errors=[
            log_error("disk_full", "No space left on device", at=run.now),
            log_error("oom", "OOM during training step"),
        ],
        why="(1) what ended it, (3) an overflow that was survived.",
    )


@case
def what_ended_the_run_comes_before_what_spoilt_it() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"lr": "6e-3"})
    run.load(card=10.0)
    run.train(200, card=17.6, loss=lambda progress: 0.4 if progress < 0.8 else 0.4 + 8 * (progress - 0.8))
    for _ in range(30):
        run.log.text += "loss is nan\n"
        run.train(10, loss=lambda progress: 0.0, gradient=lambda progress: None)
    run.begin_saving()
    run.fail("OSError: [Errno 28] No space left on device")
    return case_of(
        run,
        "disk_full_after_nan",
        health="Critical",
        first=[critical("machine.disk_gb"), critical(path_of(AI_TOOLKIT, "keep_saves"), max=3)],
        must_include=[[critical(path_of(AI_TOOLKIT, "lr"), max=3e-3)]],
        may=[{"severity": ["warning"], "path": ["config.process.train.*"]}, _SAVES],
        errors=[log_error("disk_full", "No space left on device", at=run.now), log_error("nan", "nan")],
        is_spoilt=True,
        why="(1) what ended it, (2) what spoilt it.",
    )


@each(nan=True, memory=False)
def stopped_by_the_user_in_trouble(is_nan: bool) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"lr": "6e-3" if is_nan else "1e-4", "batch": 2})
    run.load(card=10.0)
    run.train(
        200,
        card=17.6 if is_nan else 22.3,
        loss=lambda progress: 0.4 if progress < 0.8 or not is_nan else 0.4 + 8 * (progress - 0.8),
    )
    if is_nan:
        for _ in range(20):
            run.log.text += "loss is nan\n"
            run.train(10, loss=lambda progress: 0.0, gradient=lambda progress: None)
    run.be_stopped()
    first = (
        [critical(path_of(AI_TOOLKIT, "lr"), max=3e-3)] if is_nan else [critical(path_of(AI_TOOLKIT, "batch"), eq=1)]
    )
    return case_of(
        run,
        "stopped_in_trouble",
        health="Critical" if is_nan else "Warning",
        first=first,
        may=[{"severity": ["warning"], "path": ["config.process.train.*"]}] if is_nan else further_memory(run, "gpu"),
        errors=[log_error("nan", "nan")] if is_nan else [],
        is_spoilt=is_nan,
        why="A stop is no error, but what was wrong before it counts.",
    )


@case
def starved_and_sampling_by_the_time_they_take() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"cache": False, "sample_every": 100})
    run.load(card=10.0)
    for _ in range(6):
        run.train(100, card=17.6, busy=lambda sample: 95.0 if sample % 10 < 3 else 2.0)
        run.sample(90)
    run.finish()
    caching = {"severity": ["warning"], "path": "config.process[0].datasets[0].cache_latents*", "value": {"eq": True}}
    return case_of(
        run,
        "starved_and_sampling",
        health="Warning",
        first=[caching],
        must_include=[
            [
                warning(path_of(AI_TOOLKIT, "sample_every"), min=200),
                warning(path_of(AI_TOOLKIT, "disable_sampling"), eq=True),
            ]
        ],
        may=[{"severity": ["warning"], "path": ["config.process.datasets*", "config.process.sample.*", "machine.*"]}],
        why="The card waits for 45 % of the time, sampling takes 27 %.",
    )


@case
def resumed_after_an_overflow() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 2})
    run.load(card=9.0)
    run.train(300, card=20.4)
    run.save()
    run.train(80, card=20.4)
    run.overflow(card=23.7)
    run.event("training_end", step=run.step)
    run.cards, run.main = [0.0], 0.0
    run.wait(600)
    run.step = 300
    run.log.text = ""
    run.load(card=9.0)
    run.log.resume(300, 600)
    run.train(300, card=20.4)
    run.finish()
    return case_of(
        run,
        "oom_then_resumed",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        is_spoilt=True,
        why="The first part ran out of memory, the second one finished; the log has only the second.",
    )


@case
def card_that_reports_the_shared_memory() -> Case:
    run = Simulation(KOHYA, SPARK, {"workers": 6})
    run.load(card=30.0)
    run.train(300, card=35.0, worker_count=6, workers=lambda progress: 71.0 * progress)
    run.be_killed()
    for row in run.rows["GpuSample"]:
        row.update({"memory_used_gb": 35.0, "memory_total_gb": run.machine.memory_gb})
    return case_of(
        run,
        "workers_unified_reported",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        why="On a unified platform the system's memory is the only pool, whatever the card reports.",
    )


# ---------------------------------------------------------------- events and lines


@case
def lost_end_of_a_sampling() -> Case:
    run = Simulation(KOHYA, RTX_4090)
    run.load(card=10.0)
    for _ in range(3):
        run.train(200, card=17.6)
        run.sample(15)
    run.finish()
    ends = [row for row in run.rows["TrainingEvent"] if row["event_type"] == "sampling_end"]
    run.rows["TrainingEvent"].remove(ends[0])
    return case_of(run, "healthy_lost_event", health="Good", why="Steps after it prove that the sampling was over.")


@case
def events_without_details() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=17.6)
    run.sample(15)
    run.train(300, card=17.6)
    run.finish()
    for place, row in enumerate(run.rows["TrainingEvent"]):
        row.update({"details": (None, "", "[]", "{broken")[place % 4], "memory_snapshot_id": None})
    return case_of(run, "healthy_no_details", health="Good", why="An event without details is still one.")


@case
def picture_that_was_left_out() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.log.text += "Error loading image data/clay_bird/07.jpg: cannot identify image file, skipping\n"
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    return case_of(
        run,
        "healthy_picture",
        health="Good",
        noise=["cannot identify image file"],
        why="It had no consequence.",
    )


@case
def facts_without_values() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    odd: dict[str, Any] = {
        "exit_signal": None,
        "price_per_hour_usd": "unknown",
        "memory_limit_gb": "",
        "gpu_rated_clock_mhz": "nan",
        "model_bytes": "0",
        "model_load_seconds": "0",
    }
    run.info.update(odd)
    return case_of(run, "healthy_odd_facts", health="Good", why="A fact that cannot be read is none.")


@case
def card_without_samples_of_its_own() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    run.rows["GpuSample"].clear()
    return case_of(
        run,
        "healthy_no_cards",
        health="Good",
        figures={"peak_memory_gb": None, "total_memory_gb": None},
        why="The size of the card is not known.",
    )


@case
def limit_of_a_container_without_a_card() -> Case:
    run = Simulation(AI_TOOLKIT, replace(CPU_SERVER, memory_gb=251.0, idle_gb=200.0, limit_gb=32.0), {"workers": 4})
    run.load(card=(), main=6.0)
    run.train(200, worker_count=4, workers=lambda progress: 26.0 * progress)
    run.be_killed()
    return case_of(
        run,
        "workers_cpu_container",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        why="The container's 32 GB are full; the host's 251 are other people's.",
    )
