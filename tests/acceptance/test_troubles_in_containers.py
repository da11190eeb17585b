"""Real trainings that overflow a real machine: the cause is found, and the applied advice makes the next run pass.

Each machine is a container with limits, as most rented ones are. Nothing is pretended: the kernel kills, the disk is
full, and the loss leaves the range of numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.worker.background import running_worker
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.jobs.tiny_lora_runs import write_images
from tests.support.machines.contained_machine import contained_machine
from tests.support.machines.container_bench import Podman
from tests.support.machines.own_hosts import environ_with_hosts, host_behind
from tests.support.waiting import until

QUICK = {
    "STATIONMASTER_WORKER__LINGER": "0s",
    "STATIONMASTER_MONITORING__POLL_INTERVAL": "500ms",
    "STATIONMASTER_MONITORING__WATCH_INTERVAL": "500ms",
    "STATIONMASTER_MONITORING__SAMPLE_INTERVAL_SECONDS": "1",
}
_GIB_IN_MIB = 1024


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What a training is asked for, on what machine, and what must be said first."""

    parameters: dict[str, Any]
    first: tuple[str, ...]
    """The paths that the first recommendation may have."""
    memory_mib: int = 1024
    limits: tuple[str, ...] = ()
    small_disk: bool = False
    outcome: str = "FAILED"
    held_gb: tuple[float, float] | None = None
    """Between which figures the evidence names what was held."""
    applied: dict[str, Any] = field(default_factory=dict)
    """Parameters of the next run, where there is only one right value."""


WORKERS = Trouble(
    memory_mib=256,
    parameters={"workers": 2, "worker_memory_mb": 1000, "seconds_per_step": 0.1, "steps": 60},
    first=("parameters.workers",),
    held_gb=(0.10, 0.25),
    applied={"workers": 0},
)
BATCH = Trouble(parameters={"batch_size": 16, "picture_memory_mb": 70, "steps": 5}, first=("parameters.batch_size",))
EMA = Trouble(
    parameters={"ema": True, "batch_size": 1, "model_memory_mb": 520, "steps": 5},
    first=("parameters.ema",),
    applied={"ema": False},
)
NAN = Trouble(
    parameters={"optimizer": "sgd", "learning_rate": 6, "steps": 60},
    first=("parameters.learning_rate",),
    outcome="COMPLETED",
)
DISK = Trouble(
    memory_mib=4096,  # the small disk is in memory
    small_disk=True,
    parameters={"checkpoint_mb": 200, "keep_saves": 10, "save_every": 2, "steps": 20},
    first=("parameters.keep_saves", "machine.disk_gb"),
)
SHARED_MEMORY = Trouble(
    limits=("--shm-size=1m",),
    parameters={"workers": 2, "resolution": 256, "steps": 20},
    first=("machine.shm_gb", "parameters.workers"),
    applied={"workers": 0},
)


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    engine = Podman()
    yield engine
    engine.close()


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(WORKERS, id="workers"),
        pytest.param(BATCH, id="batch", marks=pytest.mark.slow),
        pytest.param(EMA, id="ema", marks=pytest.mark.slow),
        pytest.param(NAN, id="nan", marks=pytest.mark.slow),
        pytest.param(DISK, id="disk", marks=pytest.mark.slow),
        pytest.param(SHARED_MEMORY, id="shared memory", marks=pytest.mark.slow),
    ],
)
def test_the_cause_is_found_and_the_applied_advice_makes_the_next_run_pass(
    podman: Podman, tmp_path: Path, trouble: Trouble
) -> None:
    memory = f"{trouble.memory_mib}m"
    folder = tmp_path / "machine"
    folder.mkdir()
    disk = [f"--tmpfs={folder}/jobs:rw,size=1100m"] if trouble.small_disk else []
    limits = (f"--memory={memory}", f"--memory-swap={memory}", *trouble.limits, *disk)
    with contained_machine(podman, folder, *limits) as machine:
        environ = {
            **environ_with_hosts(tmp_path, host_behind(machine, "box", folder / "jobs"), trusted=(machine,)),
            **QUICK,
        }
        try:
            job = _trained(trouble, tmp_path, environ)
            report = answer_of("analyze", "first", "--json", environ=environ)
            again = _trained_as_advised(environ)
        finally:
            until(lambda: running_worker(tmp_path / "home") is None, seconds=100)
    assert job["outcome"] == trouble.outcome, job["explanation"]
    assert report["summary"]["health_score"] == "critical"
    first = report["recommendations"][0]
    assert (first["severity"], first["config_path"]) in [("critical", path) for path in trouble.first], first
    if trouble.held_gb is not None:
        held = [each["value"] for each in first["evidence"] if each["unit"] == "GB" and "workers" in each["what"]]
        assert trouble.held_gb[0] <= held[0] <= trouble.held_gb[1], first
        assert report["summary"]["total_memory_gb"] == trouble.memory_mib / _GIB_IN_MIB
    assert again["outcome"] == "COMPLETED", again["explanation"]
    assert {name: again["parameters"][name] for name in trouble.applied} == trouble.applied
    if trouble is NAN:
        assert 0 < again["progress"]["loss"] < again["progress"]["first_loss"]


def _trained(trouble: Trouble, folder: Path, environ: dict[str, str]) -> Any:
    images = write_images(folder / "images", count=16)
    common = {"seconds_per_step": 0.05, "save_every": 1000, "sample_every": 1000, "python": sys.executable}
    values = [f"{name}={str(value).lower()}" for name, value in {**common, **trouble.parameters}.items()]
    words = ["--recipe", "tiny-lora@1", "--dataset", str(images), "--name", "cats", "--provider", "ssh"]
    parameters = [word for value in values for word in ("-p", value)]
    submitted = stationmaster("train", *words, *parameters, "--id", "first", "--yes", environ=environ)
    assert submitted.returncode == 0, submitted.stderr
    return _ended("first", environ)


def _trained_as_advised(environ: dict[str, str]) -> Any:
    words = ("retry", "first", "--apply-recommendations", "--id", "second", "--yes")
    submitted = stationmaster(*words, environ=environ)
    assert submitted.returncode == 0, submitted.stderr
    return _ended("second", environ)


def _ended(job: str, environ: dict[str, str]) -> Any:
    stationmaster("watch", job, "--json", environ=environ)
    return answer_of("show", job, "--json", environ=environ)
