"""System memory: data-loading workers that fill it, and other ways to fill it."""

from __future__ import annotations

from dataclasses import replace

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.configs import ABSENT, AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import Want, case_of, critical, further_memory, last_memory, log_error
from tests.support.analysis_cases.machines import CPU_SERVER, RENTED_4090, RTX_4090, SPARK, TWO_3090, Machine
from tests.support.analysis_cases.simulation import Simulation

KILLED_WORKER = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. "


def no_workers(run: Simulation) -> Want:
    """Return the advice to load data in the main process, with the GB that the workers held."""
    held, one = run.workers, run.workers / max(run.worker_count, 1)
    ranges = [[0.75 * held, 1.25 * held], [0.75 * one, 1.25 * one]]
    return {**critical(path_of(run.trainer, "workers"), eq=0), "gb": ranges}


def _growing(run: Simulation, *, count: int, until: float, steps: int = 300) -> None:
    run.train(steps, worker_count=count, workers=lambda progress: until * (0.3 + 0.7 * progress))


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def workers_fill_unified_memory_and_one_is_killed(trainer: str) -> Case:
    run = Simulation(trainer, SPARK, {"workers": 6, "batch": 2})
    run.load(card=30.0)
    run.cards = [36.0]
    _growing(run, count=6, until=71.0)
    run.fail(KILLED_WORKER)
    return case_of(
        run,
        "workers_unified",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        errors=[log_error("killed", "killed by signal: Killed", at=run.now, memory=last_memory(run))],
        noise=["CalledProcessError"],
        why="Workers hold more than half of the only pool.",
    )


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def workers_fill_a_container_without_a_word(trainer: str) -> Case:
    run = Simulation(trainer, RENTED_4090, {"workers": 8})
    run.load(card=12.0)
    run.cards = [15.0]
    _growing(run, count=8, until=55.6)
    run.be_killed()
    return case_of(
        run,
        "killed_no_trace",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        must_not=[critical(path_of(trainer, "batch")), critical(path_of(trainer, "checkpointing"))],
        why="Signal 9 at 99 % of the container's limit; the host has room.",
    )


@case
def workers_fill_the_memory_of_a_bare_machine() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"workers": 4})
    run.load(card=12.0)
    run.cards = [16.0]
    _growing(run, count=4, until=52.6)
    run.log.text += "\n/bin/bash: line 1:  2764 Killed                  python run.py config.yaml\n"
    run.be_killed()
    del run.info["exit_signal"]
    return case_of(
        run,
        "workers_killed_line",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        errors=[log_error("killed", "Killed", at=run.now, memory=last_memory(run))],
        why="The shell's `Killed` and exit code 137 at 98 % of the system's memory.",
    )


@case
def workers_of_a_cpu_training() -> Case:
    run = Simulation(KOHYA, CPU_SERVER, {"workers": 5})
    run.load(card=())
    _growing(run, count=5, until=51.5)
    run.fail(KILLED_WORKER)
    return case_of(
        run,
        "workers_cpu",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        errors=[log_error("killed", "killed by signal: Killed", at=run.now, memory=last_memory(run))],
        why="The only pool of a machine without a card.",
    )


@case
def workers_fill_memory_but_the_run_survives() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"workers": 4})
    run.load(card=12.0)
    run.cards = [15.0]
    _growing(run, count=4, until=48.6, steps=600)
    run.finish()
    return case_of(
        run,
        "workers_survived",
        health="Warning",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        why="The system's memory is at 92 % and the card at 63 %; nothing failed.",
    )


@case
def workers_at_the_default_number() -> Case:
    run = Simulation(KOHYA, RENTED_4090, {"workers": ABSENT})
    run.load(card=9.0)
    run.cards = [15.0]
    _growing(run, count=8, until=55.5)
    run.be_killed()
    return case_of(
        run,
        "workers_default",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        why="The config has no number of workers: the trainer's default of 8 is what ran.",
    )


@case
def workers_of_the_second_dataset_have_no_effect() -> Case:
    datasets = [
        {"folder_path": "data/a", "cache_latents_to_disk": True, "num_workers": 6, "resolution": [512]},
        {"folder_path": "data/b", "cache_latents_to_disk": True, "num_workers": 0, "resolution": [512]},
    ]
    run = Simulation(AI_TOOLKIT, SPARK, {"datasets": datasets})
    run.load(card=30.0)
    run.cards = [34.0]
    _growing(run, count=6, until=72.0)
    run.fail(KILLED_WORKER)
    return case_of(
        run,
        "workers_two_datasets",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "unified"),
        must_not=[{"path": "config.process[0].datasets[1].num_workers"}],
        errors=[log_error("killed", "killed by signal: Killed")],
        why="The trainer takes the number of the first dataset only.",
    )


@case
def main_process_fills_system_memory() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"workers": 2, "batch": 2, "checkpointing": False})
    run.load(card=12.0, main=30.0)
    run.cards = [16.0]
    run.train(100, worker_count=2, workers=2.4, main=56.2)
    run.be_killed()
    return case_of(
        run,
        "system_full_without_workers",
        health="Critical",
        first=[critical("machine.memory_gb", min=63)],
        may=further_memory(run, "system"),
        must_not=[critical(path_of(AI_TOOLKIT, name)) for name in ("workers", "batch", "checkpointing", "resolution")],
        why="Workers hold 4 % of the pool; a setting of the card does not free the system's memory.",
    )


@case
def limit_above_the_total_is_no_container() -> Case:
    run = Simulation(KOHYA, replace(RTX_4090, limit_gb=512.0), {"workers": 4})
    run.load(card=12.0)
    run.cards = [15.0]
    _growing(run, count=4, until=52.5)
    run.be_killed()
    return case_of(
        run,
        "limit_above_total",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        why="The limit is larger than the machine: the machine's own figures count.",
    )


@case
def full_host_of_others_is_not_the_containers() -> Case:
    machine: Machine = replace(RENTED_4090, idle_gb=468.0, page_cache_gb=20.0)
    run = Simulation(AI_TOOLKIT, machine, {"workers": 2})
    run.load(card=12.0)
    run.train(600, card=17.8, worker_count=2, workers=4.0)
    run.finish()
    return case_of(
        run,
        "healthy_full_host",
        health="Good",
        why="The host's memory is nearly full of other people's; this container uses 10 of 62 GB.",
    )


@each(grown=True, before=False)
def swap(has_grown: bool) -> Case:
    machine = replace(RTX_4090, swap_gb=2.4)
    run = Simulation(AI_TOOLKIT, machine, {"workers": 4 if has_grown else 0})
    run.load(card=12.0)
    if not has_grown:
        run.train(600, card=18.0)
        run.finish()
        return case_of(run, "healthy_old_swap", health="Good", why="Swap that was in use before is nothing.")
    run.train(600, card=18.0, worker_count=4, workers=51.6, swap=lambda progress: 2.4 + 5 * progress)
    run.finish()
    return case_of(
        run,
        "swap_grown",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        why="Swap grew by 5 GB while workers filled the system's memory to 96 %.",
    )


@case
def fullest_of_two_cards_counts() -> Case:
    run = Simulation(KOHYA, TWO_3090, {"batch": 2})
    run.load(card=[7.0, 7.0])
    run.cards = [14.0, 22.3]
    run.train(600)
    run.finish()
    return case_of(
        run,
        "two_cards",
        health="Warning",
        first=[critical(path_of(KOHYA, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        why="The second card is at 93 %, the first at 58 %.",
    )


@case
def system_memory_at_87_percent_has_no_handle_on_the_card() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"checkpointing": False, "workers": 2})
    run.load(card=8.0)
    run.train(600, card=15.0, main=44.0, worker_count=2, workers=7.3)
    run.finish()
    return case_of(
        run,
        "system_87",
        health="Warning",
        may=[{"severity": ["warning"], "path": [path_of(KOHYA, "workers"), "machine.memory_gb", "cache_latents*"]}],
        must_not=[{"path": path_of(KOHYA, name), "severity": ["warning"]} for name in ("checkpointing", "resolution")],
        why="Settings of the card have no effect on the system's memory.",
    )
