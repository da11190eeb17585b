"""examples/ci: the step of the workflow passes with a good training, and fails with a bad one."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands.cli_runs import Ran
from tests.support.commands.command_line import PATIENCE_SECONDS
from tests.support.commands.example_runs import EXAMPLES, QUICK, Person
from tests.support.jobs.stored_jobs import as_failed
from tests.support.waiting import until

EXAMPLE = EXAMPLES / "ci"
COMMIT = {"GITHUB_SHA": "9f3c1a7b2d4400", "GITHUB_RUN_ATTEMPT": "1"}
JOB = "ci-9f3c1a7b2d44-1"


def _step() -> dict[str, Any]:
    workflow = yaml.safe_load((EXAMPLE / "train.yml").read_text(encoding="utf-8"))
    (step,) = (step for step in workflow["jobs"]["train"]["steps"] if step.get("name") == "train")
    found: dict[str, Any] = step
    return found


@pytest.fixture(scope="module")
def built(person: Person, pictures: Path) -> Ran:
    """The step of the workflow, run for a commit."""
    shutil.copytree(pictures, person.folder / "dataset")
    (person.folder / "ci").symlink_to(EXAMPLE)
    environ = {**COMMIT, "GITHUB_STEP_SUMMARY": str(person.folder / "summary.md"), "MAX_LOSS": "10"}
    return person.run("bash", "-c", f"{_step()['run']} {' '.join(QUICK)}", environ=environ)


def test_the_workflow_s_step_trains_and_leaves_the_model(person: Person, built: Ran) -> None:
    assert set(_step()["env"]) == {"STATIONMASTER_SERVER", "STATIONMASTER_TOKEN", "MAX_LOSS"}
    assert built.code == 0, built.err
    assert (person.folder / "summary.md").read_text().startswith(f"training {JOB}: COMPLETED, loss 0.")
    assert (person.folder / "model" / "output" / "ci.safetensors").is_file()


def test_a_loss_that_is_too_high_fails_the_build(person: Person, pictures: Path, built: Ran) -> None:
    """The same commit again: the job exists, only its loss is judged."""
    assert built.code == 0, built.err
    words = (EXAMPLE / "train-in-ci.sh", pictures, "model", *QUICK)
    ran = person.run(*words, environ={**COMMIT, "MAX_LOSS": "0.0000001"})
    assert (ran.code, "the loss is above 0.0000001" in ran.out) == (1, True)


def test_a_training_that_fails_fails_the_build_with_its_exit_code(person: Person, pictures: Path, built: Ran) -> None:
    """The same commit again, as if its training had failed."""
    assert built.code == 0, built.err
    with as_failed(person.home.store, JOB):
        ran = person.run(EXAMPLE / "train-in-ci.sh", pictures, "other", *QUICK, environ=COMMIT)
    assert ran.code == 41
    assert "FAILED" in ran.out
    assert not (person.folder / "other").exists()


def test_a_request_that_is_wrong_has_its_own_exit_code(person: Person, tmp_path: Path) -> None:
    ran = person.run(EXAMPLE / "train-in-ci.sh", tmp_path / "nothing", "other", environ={"GITHUB_SHA": "none"})
    assert ran.code not in (0, 1)
    assert ran.err.startswith("error: ")


def test_a_cancelled_build_stops_its_training_and_keeps_the_checkpoint(person: Person, pictures: Path) -> None:
    slow = ("--steps", "100000", "-p", "seconds_per_step=0.02", "-p", "save_every=10")
    words = [str(EXAMPLE / "train-in-ci.sh"), str(pictures), "other", *slow]
    environ = {**person.environ, "GITHUB_SHA": "cancelled0000"}
    with subprocess.Popen(words, env=environ, cwd=person.folder, stdout=subprocess.DEVNULL) as build:
        until(lambda: person.home.has_checkpoint("ci-cancelled000-1"), "a checkpoint of the build's training")
        build.send_signal(signal.SIGTERM)
        assert build.wait(timeout=PATIENCE_SECONDS) == 130
    assert person.home.run("watch", "ci-cancelled000-1").code == 40, "INCOMPLETE"
