"""Recommendations become parameters and wishes of the next job; what cannot be applied has a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stationmaster.analysis.applying.apply import Followed, OldJob, follow
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Recommendation, Severity
from stationmaster.errors import UserError
from stationmaster.model import MachineWish
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find, load
from tests.support.jobs.advice import advice, report_with

PROCESS = "config.process[0]"


def old_job(
    recipe: str = "tiny-lora", *, wish: MachineWish | None = None, host: str | None = None, **given: Any
) -> OldJob:
    found = find(recipe).recipe
    return OldJob(id="old", recipe=found, parameters=resolve(found, given), wish=wish or MachineWish(), host=host)


def changed(followed: Followed, job: OldJob) -> dict[str, Any]:
    """The parameters that differ, with their new values."""
    return {name: value for name, value in followed.parameters.items() if value != job.parameters[name]}


def reasons(followed: Followed) -> dict[int, str]:
    return {each.number: each.why for each in followed.skipped}


def test_the_parameters_that_advice_names_change_and_no_others() -> None:
    job = old_job(batch_size=64)
    found = follow(report_with(advice(Lever.BATCH_SIZE, 8), advice(Lever.LEARNING_RATE, 0.005)), job)
    assert changed(found, job) == {"batch_size": 8, "learning_rate": 0.005}
    assert [(one.number, one.what, one.before, one.after) for one in found.applied] == [
        (1, "batch_size", 64, 8),
        (2, "learning_rate", 0.01, 0.005),
    ]
    assert found.skipped == ()
    assert found.wish == MachineWish()


def test_the_parameter_behind_a_path_of_the_trainer_s_config_changes() -> None:
    job = old_job("flux-lora", batch_size=4)
    found = follow(
        report_with(
            advice(Lever.BATCH_SIZE, 1, path=f"{PROCESS}.train.batch_size"),
            advice(Lever.EMA, False, path=f"{PROCESS}.train.ema_config.use_ema"),
            advice(Lever.RESOLUTION, [512, 768], path=f"{PROCESS}.datasets[0].resolution"),
            advice(Lever.WORKERS, 0, path=f"{PROCESS}.datasets[0].num_workers"),
        ),
        job,
    )
    assert changed(found, job) == {"batch_size": 1, "ema": False, "largest_resolution": "768"}
    assert reasons(found) == {4: f"flux-lora@2 has no parameter for it: set {PROCESS}.datasets[0].num_workers to 0"}


def test_info_waits_for_a_name() -> None:
    job = old_job()
    report = report_with(advice(Lever.BATCH_SIZE, 2), advice(Lever.SAVE_EVERY, 200, severity=Severity.INFO))
    default = follow(report, job)
    assert changed(default, job) == {"batch_size": 2}
    assert reasons(default) == {2: "it is only info: --only 2 applies it"}
    named = follow(report, job, only=["save_every"])
    assert changed(named, job) == {"save_every": 200}
    assert named.skipped == ()


@pytest.mark.parametrize("text", ["2", "ema", f"{PROCESS}.train.ema_config.use_ema", "train.ema_config.use_ema"])
def test_advice_is_named_by_number_lever_path_or_parameter(text: str) -> None:
    job = old_job("flux-lora")
    report = report_with(
        advice(Lever.BATCH_SIZE, 2, path=f"{PROCESS}.train.batch_size"),
        advice(Lever.EMA, False, path=f"{PROCESS}.train.ema_config.use_ema"),
    )
    assert changed(follow(report, job, only=[text]), job) == {"ema": False}


@pytest.mark.parametrize("text", ["0", "3", "steps", "nothing", "", "-1", "²"])
def test_an_unknown_name_is_refused_with_those_that_exist(text: str) -> None:
    report = report_with(advice(Lever.BATCH_SIZE, 2), advice(Lever.MACHINE_SHM, 8))
    with pytest.raises(UserError, match="recommends nothing for") as raised:
        follow(report, old_job(), only=["1", text])
    assert raised.value.hint == "--only takes 1 (batch_size), 2 (machine.shm_gb)"


def test_an_analysis_without_advice_is_refused() -> None:
    with pytest.raises(UserError, match="recommends no change"):
        follow(report_with(), old_job())


def test_of_two_on_one_parameter_the_higher_rank_counts() -> None:
    job = old_job()
    found = follow(
        report_with(advice(Lever.BATCH_SIZE, 2), advice(Lever.BATCH_SIZE, 16, severity=Severity.WARNING)), job
    )
    assert changed(found, job) == {"batch_size": 2}
    assert reasons(found) == {2: "recommendation 1 sets batch_size to 2"}


def test_a_value_outside_the_limits_is_the_nearest_one_and_says_so() -> None:
    job = old_job(batch_size=8)
    found = follow(report_with(advice(Lever.BATCH_SIZE, 0)), job)
    assert changed(found, job) == {"batch_size": 1}
    assert found.applied[0].note == "recommended is 0; it accepts a whole number from 1 to 256"


def test_what_would_change_nothing_is_not_applied() -> None:
    found = follow(report_with(advice(Lever.BATCH_SIZE, 0), advice(Lever.SAVE_EVERY, 100)), old_job(batch_size=1))
    assert found.applied == ()
    assert reasons(found) == {
        1: "batch_size is 1 already: recommended is 0; it accepts a whole number from 1 to 256",
        2: "save_every is 100 already",
    }


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (advice(Lever.MACHINE_SHM, 8), "tiny-lora@1 has no parameter for it: set machine.shm_gb to 8"),
        (advice(Lever.HF_TOKEN, None), "tiny-lora@1 has no parameter for it: change credentials.hf_token"),
        (advice(Lever.TORCH_VERSION, "2.8"), "tiny-lora@1 has no parameter for it: set environment.torch to 2.8"),
        (advice(Lever.LEARNING_RATE, None), "the analysis has no value for it"),
        (advice(Lever.LEARNING_RATE, "low"), "it accepts a number from 1e-06 to "),
    ],
)
def test_what_no_parameter_can_do_is_listed(one: Recommendation, why: str) -> None:
    found = follow(report_with(one), old_job())
    assert found.applied == ()
    assert reasons(found)[1].startswith(why)


def test_a_checkpoint_keeps_what_it_was_made_with() -> None:
    job = old_job("llm-lora")
    report = report_with(advice(Lever.MODEL, "owner/other"), advice(Lever.BATCH_SIZE, 1))
    assert changed(follow(report, job, resuming=True), job) == {"batch_size": 1}
    assert changed(follow(report, job), job) == {"base_model": "owner/other", "batch_size": 1}


def test_a_larger_disk_and_gpu_are_asked_of_the_machine() -> None:
    job = old_job("flux-lora")
    found = follow(report_with(advice(Lever.MACHINE_DISK_SIZE, 160), advice(Lever.MACHINE_GPU_MEMORY, 48)), job)
    assert changed(found, job) == {}
    assert found.wish == MachineWish(disk_gib=160, vram_gib=44.64)
    assert [(one.what, one.before, one.after) for one in found.applied] == [
        ("machine.disk_gb", 80, 160),
        ("machine.gpu_memory_gb", job.recipe.needs.vram_gib, 44.64),
    ]


def test_a_smaller_gpu_is_for_the_market_to_find() -> None:
    found = follow(report_with(advice(Lever.MACHINE_GPU_MEMORY, 24)), old_job("flux-lora"))
    assert found.applied == ()
    assert reasons(found) == {1: "the job takes machines from 24 GB on already: offers and price decide"}


def test_the_limits_of_a_container_are_raised() -> None:
    contained = load(Path(__file__).parents[2] / "fixtures" / "training-tools" / "everything").recipe
    job = OldJob(id="old", recipe=contained, parameters=resolve(contained, {}))
    found = follow(report_with(advice(Lever.MACHINE_SHM, 8), advice(Lever.MACHINE_MEMORY, 16)), job)
    assert found.wish == MachineWish(shm_gib=8.0, memory_gib=16.0)
    assert [one.change for one in found.applied] == ["machine.shm_gb: 0.5 -> 8", "machine.memory_gb: 2 -> 16"]


@pytest.mark.parametrize("lever", [Lever.MACHINE_HOST, Lever.MACHINE_COOLING, Lever.MACHINE_DISK])
def test_the_host_that_failed_is_avoided(lever: Lever) -> None:
    job = old_job(host="4711", wish=MachineWish(avoided_machines=("42",)))
    found = follow(report_with(advice(lever, None)), job)
    assert found.wish.avoided_machines == ("42", "4711")
    assert [(one.before, one.after) for one in found.applied] == [("4711", "any but 4711")]


def test_where_there_is_no_other_host_the_advice_is_listed() -> None:
    found = follow(report_with(advice(Lever.MACHINE_HOST, None)), old_job())
    assert reasons(found) == {1: "the provider has no other machine, or does not identify them"}


def test_advice_of_one_kind_on_the_host_counts_once() -> None:
    found = follow(
        report_with(advice(Lever.MACHINE_HOST, None), advice(Lever.MACHINE_COOLING, None)), old_job(host="7")
    )
    assert found.wish.avoided_machines == ("7",)
    assert reasons(found) == {2: "the job avoids machine 7 already"}
