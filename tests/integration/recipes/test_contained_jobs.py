"""Whole jobs whose steps run in containers of a real engine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.control.machine.login import engine_problem
from stationmaster.model import Outcome, Reason
from tests.support.jobs.recipe_jobs import MODEL, RecipeWorld, scripted
from tests.support.machines.container_bench import IMAGE, Podman

CONTAINER = f"""\
runtime: podman
container:
  image: {IMAGE}
  memory_gib: 0.0625
  shm_gib: 0.01
  mounts: [{{source: "{{{{ work.dir }}}}/cache", target: /cache}}]
health: {{argv: [/bin/sh, -c, "test ! -e /etc/debian_version"]}}
bootstrap: [{{name: outside, shell: "test -x /usr/bin/env; mkdir -p {{{{ work.dir }}}}/cache"}}]
cleanup: [{{name: tidy, shell: "test ! -e /etc/debian_version; rm /cache/left"}}]
"""


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    engine = Podman()
    yield engine
    engine.close()


@pytest.fixture
def path(podman: Podman, tmp_path: Path) -> str:
    """A PATH whose podman is the test's own: a machine sees nothing else of this computer's environment."""
    program = tmp_path / "bin" / "podman"
    program.parent.mkdir()
    settings = " ".join(f"{name}={value}" for name, value in podman.environment.items())
    program.write_text(f'#!/bin/sh\nPATH={os.environ["PATH"]} {settings} exec podman "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{program.parent}:{os.environ['PATH']}"


def test_a_training_in_a_container_comes_home_and_leaves_no_container(
    path: str, podman: Podman, tmp_path: Path
) -> None:
    train = f"touch /cache/left; test ! -e /etc/debian_version; {MODEL}\necho {{{{ job.name }}}}"
    with RecipeWorld(tmp_path, scripted(train, more=CONTAINER), PATH=path) as world:
        job_id = world.submit(name="it's; $(id)")
        world.work_until_ended(job_id)
        job = world.station.jobs.view(job_id).job
        (told,) = world.told(job_id, "cleanup")
        log = b"".join(chunk.data for _, chunk in world.station.logs.of_job(job_id)).decode()
    assert job.outcome is Outcome.COMPLETED, job.explanation
    assert told.payload["state"] == "done", told.payload
    assert log.splitlines()[-1] == "it's; $(id)"
    assert podman.containers() == []


def test_a_training_that_needs_too_much_memory_says_so(path: str, podman: Podman, tmp_path: Path) -> None:
    train = "dd if=/dev/zero of=/dev/null bs=200M count=1"
    with RecipeWorld(tmp_path, scripted(train, more=CONTAINER), PATH=path) as world:
        job_id = world.submit()
        world.work_until_ended(job_id)
        job = world.station.jobs.view(job_id).job
    assert (job.outcome, job.reason) == (Outcome.FAILED, Reason.STEP_FAILED)
    assert job.explanation is not None
    assert "exceeded the memory limit of its container" in job.explanation
    assert podman.containers() == []


def test_a_machine_without_the_engine_is_not_used() -> None:
    said = engine_problem({"tools": ["python3", "rsync"]}, "podman")
    assert said == "podman is not installed there and the recipe runs in containers (found: python3, rsync)"
    assert engine_problem({"tools": ["python3", "podman"]}, "podman") is None
    assert engine_problem({"tools": []}, "host") is None
