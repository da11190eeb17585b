"""Odd files: broken and missing readings, missing facts, other clocks, resumed runs, logs that begin late or never."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.catalogue.memory import oom_text
from tests.support.analysis_cases.catalogue.workers import KILLED_WORKER, no_workers
from tests.support.analysis_cases.configs import ABSENT, AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import case_of, critical, further_memory, last_memory, log_error
from tests.support.analysis_cases.logs import AiToolkitLog, KohyaLog
from tests.support.analysis_cases.machines import (
    A6000,
    CPU_SERVER,
    RENTED_4090,
    RTX_3090,
    RTX_4090,
    SPARK,
    TWO_3090,
)
from tests.support.analysis_cases.simulation import BEGIN, Simulation

_UNKNOWN = {"peak_memory_gb": None, "total_memory_gb": None}


def healthy(trainer: str = AI_TOOLKIT, machine: Any = RTX_4090, **how: Any) -> Simulation:
    """Return a run that is fine, at 73 % of a card."""
    run = Simulation(trainer, machine, how.pop("settings", {}), **how)
    run.load(card=10.0)
    run.train(run.total, card=17.6)
    run.finish()
    return run


# ---------------------------------------------------------------- readings


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def broken_readings(trainer: str) -> Case:
    run = healthy(trainer)
    cards, machines = run.rows["GpuSample"], run.rows["MetricsSample"]
    cards[12]["memory_used_gb"] = 31.7  # above the card's size
    cards[30]["memory_used_gb"] = -1.0
    cards[31]["memory_used_gb"] = 17_179_869_184.0
    machines[20]["available_memory_gb"] = -9.5  # more in use than there is
    machines[25]["available_memory_gb"] = 80.0
    return case_of(run, "healthy_broken_readings", health="Good", why="Readings that cannot be are ignored.")


@case
def readings_with_gaps() -> Case:
    run = healthy()
    for place, row in enumerate(run.rows["GpuSample"]):
        if place % 3 == 0:
            row.update({"memory_used_gb": None, "utilization_percent": None, "clock_mhz": None})
    for row in run.rows["MetricsSample"][::4]:
        row.update({"available_memory_gb": None, "worker_memory_gb": None, "swap_used_gb": None})
    for table in ("GpuSample", "MetricsSample"):
        run.rows[table] = [row for row in run.rows[table] if not 400 < row["timestamp"] - BEGIN < 700]
    return case_of(run, "healthy_gaps", health="Good", why="NULL is not measured; five minutes are missing.")


@case
def page_cache_fills_everything() -> Case:
    run = Simulation(AI_TOOLKIT, replace(SPARK, page_cache_gb=119.0))
    run.load(card=30.0)
    run.train(600, card=55.0)
    run.finish()
    return case_of(
        run,
        "healthy_page_cache",
        health="Good",
        must_not_say=(r"\boom\b", "out of memory"),
        why="All memory is `used`, and most of it available.",
    )


@case
def used_memory_above_everything_in_trouble() -> Case:
    run = Simulation(AI_TOOLKIT, replace(RTX_4090, page_cache_gb=60.0), {"batch": 2})
    run.load(card=9.0)
    run.train(100, card=22.0)
    run.overflow(card=23.7)
    run.fail(oom_text())
    return case_of(
        run,
        "batch_page_cache",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now, memory=last_memory(run))],
        why="The card overflowed; the page cache is not the system's trouble.",
    )


@case
def fullest_card_by_its_share() -> Case:
    run = Simulation(KOHYA, replace(TWO_3090, card_gb=(24.0, 12.0)), {"batch": 2})
    run.load(card=[6.0, 4.0])
    run.cards = [15.0, 11.2]
    run.train(600)
    run.finish()
    run.base_cards = [4.0]
    return case_of(
        run,
        "two_sizes",
        health="Warning",
        first=[critical(path_of(KOHYA, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        why="The smaller card is the fuller one, at 93 %.",
    )


# ---------------------------------------------------------------- facts


@each(
    platform=["platform"],
    framework=["framework"],
    times=["started_at"],
    end=["ended_at"],
    exit_code=["exit_code"],
    total=["total_steps"],
    all=["platform", "framework", "started_at", "ended_at", "exit_code", "total_steps", "gpu_count"],
)
def missing_facts_of_a_healthy_run(keys: list[str]) -> Case:
    run = healthy(KOHYA if "total_steps" in keys else AI_TOOLKIT)
    for key in keys:
        del run.info[key]
    return case_of(run, "healthy_missing_facts", health="Good", why=f"There is no {', '.join(keys)}.")


@case
def missing_platform_of_unified_memory() -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"workers": 6})
    run.load(card=30.0)
    run.train(200, card=35.0, worker_count=6, workers=70.0)
    run.fail(KILLED_WORKER)
    del run.info["platform"]
    return case_of(
        run,
        "workers_no_platform",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        errors=[log_error("killed", "killed by signal: Killed", at=run.now, memory=last_memory(run))],
        why="A card without memory of its own shares the system's.",
    )


@case
def missing_facts_of_a_crash() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"batch": 3})
    run.load(card=9.0)
    run.train(100, card=21.6)
    run.overflow(card=23.7)
    run.fail(oom_text())
    run.info.clear()
    return case_of(
        run,
        "batch_no_facts",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), min=1, max=2)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now)],
        why="There are no facts at all.",
    )


@case
def other_clocks() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"batch": 3}, clock_offset=5400.0, utc_offset=-14400.0)
    run.load(card=9.0)
    run.train(100, card=21.6)
    run.overflow(card=23.7)
    run.fail(oom_text())
    return case_of(
        run,
        "batch_clocks",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), min=1, max=2)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now, memory=last_memory(run))],
        why="The controller's clock is 90 minutes behind the machine's; the log's is local.",
    )


@case
def logged_time_of_an_error() -> Case:
    run = Simulation(KOHYA, RTX_4090, utc_offset=32400.0)
    run.load(card=9.0)
    run.train(250, card=17.6)
    assert isinstance(run.log, KohyaLog)
    run.begin_saving()
    run.wait(3)
    at = run.now
    run.log.line(at, "ERROR", "No space left on device: output/clay_bird-step00000250.safetensors", "train_util.py:21")
    run.wait(200)
    run.fail("OSError: [Errno 28] No space left on device")
    return case_of(
        run,
        "disk_full_times",
        health="Critical",
        first=[critical("machine.disk_gb"), critical("save_last_n_*")],
        may=[{"severity": ["warning"], "path": ["save_*", "machine.disk*"]}],
        errors=[log_error("disk_full", "No space left on device")],
        must_not_say=(r"\boom\b", "out of memory"),
        why="The same problem is one entry.",
    )


@case
def clock_offset_does_not_make_it_longer() -> Case:
    run = healthy(KOHYA, clock_offset=-7200.0, utc_offset=19800.0)
    return case_of(run, "healthy_clocks", health="Good", why="Start and end are by the same clock.")


# ---------------------------------------------------------------- rows


@case
def rows_in_any_order() -> Case:
    run = healthy()
    for table in ("MetricsSample", "GpuSample", "StepMetric", "TrainingEvent"):
        rows = run.rows[table]
        mixed = rows[::2] + rows[1::2]
        numbers = sorted(row["id"] for row in rows)
        run.rows[table] = [{**row, "id": number} for row, number in zip(mixed, numbers, strict=True)]
        for row in run.rows[table]:
            row.pop("memory_snapshot_id", None)
    return case_of(run, "healthy_order", health="Good", why="Rows count by their time.")


@each(older=-90_000.0, newer=90_000.0)
def another_job_in_the_file(later: float) -> Case:
    other = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 4}, job="0therj0b42", begin=BEGIN + later)
    other.load(card=9.0)
    other.train(100, card=22.0)
    other.overflow(card=23.8)
    other.fail(oom_text())
    run = healthy()
    return case_of(
        run, "healthy_second_job", health="Good", other_jobs={other.job: other}, why="Only rows of this job."
    )


@case
def last_rows_are_in_the_write_ahead_log() -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"workers": 6})
    run.load(card=30.0)
    run.train(300, card=35.0, worker_count=6, workers=lambda progress: 20 + 50 * progress)
    run.be_killed()
    return case_of(
        run,
        "workers_wal",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        rows_in_wal=4,
        why="The last rows were not yet in the file itself.",
    )


@case
def no_steps_and_no_events() -> Case:
    run = healthy(KOHYA)
    run.rows["StepMetric"].clear()
    run.rows["TrainingEvent"].clear()
    del run.info["exit_code"]
    return case_of(run, "healthy_log_only", health="Good", why="The log shows how far it came and that it ended well.")


@case
def no_samples() -> Case:
    run = healthy()
    run.rows["MetricsSample"].clear()
    run.rows["GpuSample"].clear()
    for row in run.rows["TrainingEvent"]:
        row["memory_snapshot_id"] = None
    return case_of(run, "healthy_no_samples", health="Good", figures=_UNKNOWN, why="Nothing was measured.")


@case
def no_samples_and_an_overflow() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 4})
    run.load(card=9.0)
    run.train(100, card=22.0)
    run.fail(oom_text())
    for rows in run.rows.values():
        rows.clear()
    return case_of(
        run,
        "batch_log_only",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), min=1, max=3)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory")],
        figures={**_UNKNOWN, "steps_completed": {"min": 70, "max": 101}},
        why="Only the log knows.",
    )


@case
def nothing_but_facts() -> Case:
    run = healthy()
    for rows in run.rows.values():
        rows.clear()
    run.log.text = ""
    run.info["exit_code"] = "1"
    return case_of(
        run,
        "empty",
        health="Critical",
        is_completed=False,
        may=[{"severity": ["critical", "warning"], "path": ["machine.*", "environment.*"]}],
        figures={**_UNKNOWN, "steps_completed": None},
        knows_room=False,
        why="Exit code 1 is all there is.",
    )


@case
def crash_with_an_empty_log() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 4})
    run.load(card=9.0)
    run.train(100, card=21.9)
    run.overflow(card=23.7)
    run.event("training_end", step=run.step)
    run.fail("RuntimeError: x")
    run.log.text = ""
    return case_of(
        run,
        "batch_no_log",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), min=1, max=3)],
        may=further_memory(run, "gpu"),
        why="The event tells it; training_end is written after an error too.",
    )


# ---------------------------------------------------------------- steps


@case
def older_bar_ends_one_before_the_total() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.log = AiToolkitLog(shows_index=True)
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    run.rows["StepMetric"].clear()
    run.rows["TrainingEvent"].clear()
    del run.info["exit_code"]
    figures = {"steps_completed": {"min": 599, "max": 600}}
    return case_of(run, "healthy_old_bar", health="Good", figures=figures, why="Its last bar is 599 of 600.")


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def resumed_run(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090)
    run.load(card=10.0)
    run.train(400, card=17.6)
    run.wait(900)
    run.cards, run.main, run.step = [0.0], 0.0, 250
    run.log.text = ""
    run.load(card=10.0)
    run.log.resume(250, 600)
    run.train(350, card=17.6)
    run.finish()
    return case_of(run, "healthy_resumed", health="Good", why="Steps repeat, and the log begins with the second part.")


@case
def resumed_kohya_counts_from_zero() -> Case:
    run = Simulation(KOHYA, RTX_4090)
    run.log = KohyaLog(skipped=400)
    run.step = 400
    run.load(card=10.0)
    run.train(200, card=17.6)
    run.finish()
    run.rows["StepMetric"].clear()
    run.rows["TrainingEvent"].clear()
    figures = {"steps_completed": {"min": 200, "max": 600}}
    return case_of(run, "healthy_resumed_bar", health="Good", figures=figures, why="The bar ends at 200 of 200.")


@case
def all_steps_but_no_end() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.begin_saving()
    run.wait(10)
    run.be_killed()
    return case_of(
        run,
        "killed_at_final_save",
        health="Critical",
        first=[critical("machine.host")],
        figures={"steps_completed": {"min": 599, "max": 601}},
        must_not_say=(r"\boom\b", "out of memory"),
        why="All steps are done; the end was not reached.",
    )


@case
def ended_early_with_exit_code_0() -> Case:
    run = Simulation(KOHYA, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=17.6)
    run.event("training_end", step=300)
    run.fail("x", exit_code=0)
    run.log.text = run.log.text.partition("\nTraceback")[0]
    return case_of(
        run,
        "short",
        health="Good",
        may=[{"severity": ["critical", "warning"], "path": ["machine.*", "environment.*"]}],
        why="300 of 600 steps: not completed, whatever the exit code.",
    )


# ---------------------------------------------------------------- logs

_NOISE = (
    ("ERROR: TensorBoard could not bind to port 6006, it was already in use", "could not bind to port"),
    (
        "Token indices sequence length is longer than the specified maximum sequence length for this model (91 > 77). "
        "Running this sequence through the model will result in indexing errors",
        "indexing errors",
    ),
    (
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. "
        "Disabling parallelism to avoid deadlocks...",
        "just got forked",
    ),
    ("Error caught was: No module named 'triton'", "No module named 'triton'"),
    ("E0000 00:00:1730000000.1 cuda_blas.cc:1418] Unable to register cuBLAS factory: Attempting to register", "cuBLAS"),
    ("FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated.", "is deprecated"),
    ("UserWarning: Failed to load image Python extension: libjpeg.so.8", "Failed to load image"),
    (
        "[W1101 ProcessGroupNCCL.cpp:1250] Warning: destroy_process_group() was not called before exit",
        "destroy_process",
    ),
    ("prompt: a photo of a bedroom, nan bread, killed by kindness, errors everywhere", "bedroom"),
    ("Dataset: data/oom_pah_band_401_403", "oom_pah"),
)


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def noise_in_a_healthy_log(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090)
    run.log.text += "".join(f"{line}\n" for line, _ in _NOISE)
    run.load(card=10.0)
    run.train(300, card=17.6)
    run.log.text += "".join(f"\n{line}\n" for line, _ in _NOISE[:4])
    run.train(300, card=17.6)
    run.finish()
    return case_of(
        run,
        "healthy_noise",
        health="Good",
        noise=[mark for _, mark in _NOISE],
        must_not_say=(r"\boom\b", "out of memory", "killed"),
        why="Lines that look like errors and had no consequence.",
    )


@case
def caught_traceback_without_consequence() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.log.text += (
        'Traceback (most recent call last):\n  File "xformers/__init__.py", line 57, in _is_triton_available\n'
        "ModuleNotFoundError: No module named 'triton'\n"
    )
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    return case_of(
        run,
        "healthy_traceback",
        health="Good",
        noise=["No module named 'triton'"],
        why="The run went on and ended well.",
    )


@case
def log_ends_in_nothing() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=17.6)
    run.log.text += "\0" * 400
    run.be_killed()
    return case_of(
        run,
        "host_stop",
        health="Critical",
        first=[critical("machine.host")],
        must_not_say=(r"\boom\b", "out of memory"),
        why="NUL bytes and signal 9 at half of the memory: the host stopped.",
    )


@case
def windows_log() -> Case:
    run = healthy(KOHYA, RTX_3090)
    run.log.text = run.log.text.replace("\n", "\r\n").replace("█", "#")
    run.rows["StepMetric"].clear()
    return case_of(run, "healthy_windows", health="Good", why="CRLF and bars of number signs.")


# ---------------------------------------------------------------- room


@each(
    batch=(AI_TOOLKIT, A6000, 22.0, {}),
    checkpointing=(KOHYA, A6000, 17.0, {"batch": 2}),
    card=(AI_TOOLKIT, A6000, 19.0, {"batch": 2, "price": True}),
    unified=(KOHYA, SPARK, 30.0, {}),
)
def comfortable(given: tuple[str, Any, float, dict[str, Any]]) -> Case:
    trainer, machine, level, settings = given
    has_price = settings.get("price", False)
    run = Simulation(trainer, machine, {key: value for key, value in settings.items() if key != "price"})
    if has_price:
        run.info["price_per_hour_usd"] = "0.79"
    run.load(card=14.0)
    run.train(600, card=level)
    run.finish()
    return case_of(run, "comfortable", health="Good", why="Healthy, with memory to spare.")


@each(sixty=0.60, sixty_eight=0.685, eighty_three=0.835)
def healthy_at_a_share_of(share: float) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_3090, {"checkpointing": False, "ema": True, "quantize": False, "batch": 2})
    run.load(card=11.0)
    run.train(600, card=24.0 * share)
    run.finish()
    return case_of(run, "healthy_share", health="Good", why="Below 85 % no handle is advised.")


@case
def healthy_on_a_cpu() -> Case:
    run = Simulation(KOHYA, CPU_SERVER)
    run.load(card=(), main=12.0)
    run.train(600, main=32.0)
    run.finish()
    return case_of(run, "healthy_cpu", health="Good", why="No card, 56 % of the memory.")


@case
def healthy_in_a_container_with_two_cards() -> Case:
    run = Simulation(AI_TOOLKIT, replace(RENTED_4090, card_gb=(24.0, 24.0)), {"workers": 4})
    run.load(card=10.0)
    run.train(600, card=17.6, worker_count=4, workers=9.0)
    run.finish()
    return case_of(run, "healthy_container", health="Good", why="15 of 62 GB and 73 % of both cards.")


@case
def config_of_a_few_lines() -> Case:
    names = ("batch", "checkpointing", "workers", "save_every", "sample_every", "quantize", "cache", "resolution")
    run = Simulation(KOHYA, RTX_4090, dict.fromkeys(names, ABSENT))
    run.load(card=9.0)
    run.train(100, card=22.0)
    run.overflow(card=23.7)
    run.fail(oom_text())
    return case_of(
        run,
        "checkpointing_defaults",
        health="Critical",
        first=[critical(path_of(KOHYA, "checkpointing"), eq=True)],
        may=further_memory(run, "gpu"),
        must_not=[{"path": path_of(KOHYA, "batch")}],
        errors=[log_error("oom", "out of memory", at=run.now)],
        why="Everything is at its default: batch 1, checkpointing off.",
    )
