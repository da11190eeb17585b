"""`retry --apply-recommendations`: the advice on a training whose loss became nan makes the next one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Severity
from tests.support.commands.cli_runs import Home
from tests.support.jobs.advice import advice, report_with

RATE = 20.0
APPLY = ("retry", "steep", "--apply-recommendations")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[Home]:
    """A home in which the job `steep` was trained with a learning rate that is far too high."""
    with Home(tmp_path_factory.mktemp("steep")) as opened:
        train = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "steep", "--watch")
        values = ("--learning-rate", str(RATE), "-p", "optimizer=sgd", "-p", "seconds_per_step=0")
        ran = opened.run(*train, "--steps", "60", *values)
        assert ran.code == 0, ran.err
        yield opened


def first(home: Home, job: str) -> Any:
    return home.run("analyze", job, "--json").json()["recommendations"][0]


def test_the_advice_on_a_nan_makes_the_next_run_pass(home: Home) -> None:
    recommended = first(home, "steep")
    assert (recommended["severity"], recommended["config_path"]) == ("critical", "parameters.learning_rate")
    assert recommended["current_value"] == RATE
    rate = recommended["recommended_value"]
    assert rate <= RATE / 2

    # On a busy computer the samples of so short a run may take long enough for advice of their own.
    ran = home.run(*APPLY, "--only", "learning_rate", "--id", "calm", "--yes")
    assert ran.code == 0, ran.err
    assert f"learning_rate: 20 -> {rate:g}  (1. parameters.learning_rate, critical: " in ran.out
    home.run("watch", "calm")

    old, new = home.show("steep"), home.show("calm")
    assert {name for name, value in new["parameters"].items() if value != old["parameters"][name]} == {"learning_rate"}
    assert (new["retry_of"], new["applied"][0]["after"], new["outcome"]) == ("steep", rate, "COMPLETED")
    assert f"changed   learning_rate: 20 -> {rate:g}, as recommended" in home.run("show", "calm").out
    assert "loss is nan" in home.run("logs", "steep").out
    assert "loss is nan" not in home.run("logs", "calm").out
    assert home.run("analyze", "calm", "--json").json()["health"] != "critical"
    assert "stationmaster retry steep --apply-recommendations\n" in home.run("analyze", "steep").out


def test_a_dry_run_shows_the_changes_and_submits_nothing(home: Home) -> None:
    before = len(home.run("jobs", "--all", "--json").json())
    ran = home.run(*APPLY, "--dry-run", "--json")
    assert ran.code == 0, ran.err
    shown = ran.json()
    first_applied = shown["applied"][0]
    assert (first_applied["number"], first_applied["what"], first_applied["before"]) == (1, "learning_rate", RATE)
    assert shown["parameters"]["learning_rate"] == shown["applied"][0]["after"]
    assert "dry run: nothing was submitted" in home.run(*APPLY, "--dry-run").out
    assert len(home.run("jobs", "--all", "--json").json()) == before


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        ((*APPLY, "--only", "ema"), "recommends nothing for 'ema'", "--only takes 1 (learning_rate)"),
        (("retry", "steep", "--only", "1"), "--only needs --apply-recommendations", "add --apply-recommendations"),
    ],
)
def test_what_cannot_be_applied_is_an_error_with_a_hint(
    home: Home, arguments: tuple[str, ...], problem: str, hint: str
) -> None:
    ran = home.run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err
    assert f"hint: {hint}" in ran.err


def test_what_has_no_parameter_is_listed_with_its_path(home: Home) -> None:
    report = report_with(
        advice(Lever.MACHINE_SHM, 8),
        advice(Lever.BATCH_SIZE, 2, title="Memory is full"),
        advice(Lever.SAVE_EVERY, 50, severity=Severity.INFO),
        job_id="steep",
    )
    home.store.analyses.put("steep", 1, report)
    out = home.run(*APPLY, "--dry-run").out
    assert out.startswith(
        "changes\n"
        "  batch_size: 4 -> 2  (2. parameters.batch_size, critical: Memory is full)\n"
        "not applied\n"
        "  1. machine.shm_gb, critical: tiny-lora@1 has no parameter for it: set machine.shm_gb to 8\n"
        "  3. parameters.save_every, info: it is only info: --only 3 applies it\n"
    )
    assert "  time   " in out
    ran = home.run(*APPLY, "--only", "machine.shm_gb", "--json")
    assert ran.code == 2
    assert "no recommendation for job steep can be applied" in ran.err
    assert "set machine.shm_gb to 8" in ran.err


def test_where_all_advice_is_info_the_command_to_apply_it_names_one(home: Home) -> None:
    info = advice(Lever.BATCH_SIZE, 8, severity=Severity.INFO)
    home.store.analyses.put("steep", 1, report_with(info, job_id="steep"))
    assert "stationmaster retry steep --apply-recommendations --only 1\n" in home.run("analyze", "steep").out
    assert home.run(*APPLY, "--only", "1", "--dry-run").code == 0
    ran = home.run(*APPLY, "--dry-run")
    assert (ran.code, "--only 1 applies it" in ran.err) == (2, True)
