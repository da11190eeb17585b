"""The rows of the tables against each other: where one ends and the next begins."""

from __future__ import annotations

from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.catalogue.crashes import NOT_OOM
from tests.support.analysis_cases.catalogue.memory import oom_text
from tests.support.analysis_cases.configs import AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import case_of, critical, further_memory, last_memory, log_error, warning
from tests.support.analysis_cases.machines import RTX_4090, SPARK
from tests.support.analysis_cases.simulation import Simulation, falling_loss

# ---------------------------------------------------------------- memory


@each(sampling=True, saving=False)
def overflow_in_a_pause_while_training_is_high_too(in_sampling: bool) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 2, "ema": True, "save_dtype": "float32"})
    run.load(card=9.0)
    run.train(250, card=21.2)
    if in_sampling:
        run.begin_sampling()
    else:
        run.begin_saving()
    run.overflow(card=23.7)
    run.fail(oom_text())
    return case_of(
        run,
        "batch_not_pause",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now, memory=last_memory(run))],
        why="Training was at 88 %: not the pause alone.",
    )


@each(ai_toolkit=(AI_TOOLKIT, {"quantize": True}), kohya=(KOHYA, {"quantize": True}))
def heavy_base_that_is_quantised_already(given: tuple[str, dict[str, Any]]) -> Case:
    trainer, settings = given
    run = Simulation(trainer, RTX_4090, {**settings, "batch": 2})
    run.load(card=15.6)
    run.train(150, card=22.0)
    run.overflow(card=23.7)
    run.fail(oom_text())
    return case_of(
        run,
        "batch_quantised",
        health="Critical",
        first=[critical(path_of(trainer, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        must_not=[{"path": path_of(trainer, "quantize")}],
        errors=[log_error("oom", "out of memory", at=run.now)],
        why="The base takes 65 % and is quantised.",
    )


@case
def nothing_is_left_of_unified_memory() -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"resolution": 512})
    run.load(card=50.0)
    run.train(300, card=106.0)
    run.be_killed()
    return case_of(
        run,
        "larger_unified",
        health="Critical",
        first=[critical("machine.memory_gb", min=120), critical("machine.gpu_memory_gb", min=120)],
        may=further_memory(run, "unified"),
        why="No workers, batch 1, checkpointing, quantised, 512 pixels.",
    )


@each(checkpointing=False, resolution=True)
def unified_memory_at_87_percent_with_workers(has_checkpointing: bool) -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"workers": 4, "checkpointing": has_checkpointing})
    run.load(card=30.0)
    run.train(600, card=48.0, worker_count=4, workers=44.5)
    run.finish()
    handle = (
        warning(path_of(AI_TOOLKIT, "resolution"), max=1023)
        if has_checkpointing
        else warning(path_of(AI_TOOLKIT, "checkpointing"), eq=True)
    )
    return case_of(
        run,
        "high_stable_unified",
        health="Warning",
        first=[handle],
        may=[{**want, "severity": ["warning"]} for want in further_memory(run, "unified")],
        why="Between 85 and 90 % the order is checkpointing, resolution, batch or EMA; workers come above 90 %.",
    )


@case
def killed_at_half_of_system_memory_with_a_full_card() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 2})
    run.load(card=9.0)
    run.train(300, card=22.3)
    run.be_killed()
    return case_of(
        run,
        "signal_9_card",
        health="Critical",
        first=[critical("machine.host")],
        must_include=[[critical(path_of(AI_TOOLKIT, "batch"), eq=1)]],
        may=further_memory(run, "gpu"),
        must_not_say=NOT_OOM,
        why="Signal 9 is the system's memory or the host; a card at 93 % ends no process, but is too full.",
    )


@case
def early_leak_comes_before_lost_time() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"save_every": 50})
    run.load(card=9.0)
    for place in range(12):
        begin = 11.6 + 0.5 * place
        run.train(50, card=lambda progress, begin=begin: begin + 0.5 * progress)
        run.save(40)
    run.finish()
    return case_of(
        run,
        "leak_and_saving",
        health="Warning",
        first=[warning("environment.trainer")],
        must_include=[[warning(path_of(AI_TOOLKIT, "save_every"), min=100)]],
        may=[{"severity": ["warning"], "path": ["config.process.save.*", "machine.disk"]}],
        why="A leak is memory, saving is time.",
    )


# ---------------------------------------------------------------- time and learning


@case
def lost_time_comes_before_a_low_learning_rate() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"sample_every": 50, "lr": 4e-6})
    run.load(card=10.0)
    for _ in range(12):
        run.train(50, card=17.6, loss=lambda progress: 0.36)
        run.sample(60)
    run.finish()
    return case_of(
        run,
        "sampling_and_lr",
        health="Warning",
        first=[warning(path_of(KOHYA, "sample_every"), min=100)],
        must_include=[[warning(path_of(KOHYA, "lr"), min=2e-5, max=1e-3)]],
        may=[{"severity": ["warning"], "path": "sample_*"}],
        why="Warnings stand by the time they lost; a learning rate lost none.",
    )


@each(
    paged=("PagedAdamW8bit", True),
    adam=("Adam", True),
    lion=("Lion8bit", False),
    sgd=("SGDNesterov", False),
    prodigy=("prodigyplus.ProdigyPlusScheduleFree", False),
)
def optimizers_and_a_low_learning_rate(given: tuple[str, bool]) -> Case:
    optimizer, is_adam = given
    run = Simulation(KOHYA, RTX_4090, {"lr": 5e-6, "optimizer": optimizer})
    run.load(card=10.0)
    run.train(600, card=17.6, loss=lambda progress: 0.36)
    run.finish()
    return case_of(
        run,
        "lr_by_optimizer",
        health="Warning" if is_adam else "Good",
        first=[warning(path_of(KOHYA, "lr"), min=2e-5, max=1e-3)] if is_adam else None,
        why="Only for optimizers of the Adam kind is 5e-6 known to be too low.",
    )


@each(known=True, unknown=False)
def throttled_all_the_time(knows_clock: bool) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6, clock=lambda sample: ("hw_thermal", 1400.0))
    run.finish()
    for row in run.rows["GpuSample"]:
        row["clock_mhz"] = 1400.0
    if knows_clock:
        run.info["gpu_rated_clock_mhz"] = "2520"
    return case_of(
        run,
        "throttled_always",
        health="Warning" if knows_clock else "Good",
        first=[warning("machine.cooling"), warning("machine.host")] if knows_clock else None,
        may=[{"severity": ["warning"], "path": "machine.*"}] if knows_clock else [],
        why="Without a rated clock there is none to compare with.",
    )


# ---------------------------------------------------------------- how far it came


@case
def rows_end_before_the_log() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    run.rows["StepMetric"] = run.rows["StepMetric"][:20]
    run.rows["TrainingEvent"] = run.rows["TrainingEvent"][:1]
    return case_of(run, "healthy_rows_short", health="Good", why="The rows prove 200 steps, the log 600.")


@case
def log_ends_before_the_rows() -> Case:
    run = Simulation(KOHYA, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    run.log.text = run.log.text[: len(run.log.text) // 2]
    return case_of(run, "healthy_log_short", health="Good", why="The log was cut; rows and exit code show the end.")


@each(last_step=600, before=420)
def stopped_with_exit_code_0(steps: int) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(steps, card=17.6, loss=falling_loss)
    run.be_stopped()
    run.info["exit_code"] = "0"
    del run.info["exit_signal"]
    return case_of(run, "stopped_0", health="Good", why="A stop by the user is not completed.")
