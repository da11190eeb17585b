"""examples/several-gpus, as a dry run on a computer with two invented GPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stationmaster.datasets.sample_set import write_sample_set
from tests.support.commands.example_runs import EXAMPLES, Person
from tests.support.machines.gpu_tools import nvidia_gpu, write_nvidia_smi

EXAMPLE = EXAMPLES / "several-gpus"


@pytest.fixture(scope="module")
def two_gpus(person: Person) -> dict[str, str]:
    tools = write_nvidia_smi(person.folder / "tools", [nvidia_gpu(0), nvidia_gpu(1)])
    return {"PATH": os.pathsep.join([str(tools), person.environ["PATH"]])}


@pytest.fixture(scope="module")
def portraits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets") / "portraits"
    folder.mkdir()
    write_sample_set(folder)
    return folder


def test_one_training_is_launched_on_both(person: Person, two_gpus: dict[str, str], portraits: Path) -> None:
    ran = person.run(EXAMPLE / "one-training.sh", "2", portraits, "--dry-run", environ=two_gpus)
    assert ran.code == 0, ran.err
    assert "--num_processes=2" in ran.out or "--num_processes 2" in ran.out
    refused = person.run(EXAMPLE / "one-training.sh", "3", portraits, environ=two_gpus)
    assert refused.code != 0
    assert "hint:" in refused.err


def test_each_training_gets_one(person: Person, two_gpus: dict[str, str], portraits: Path) -> None:
    ran = person.run(
        EXAMPLE / "one-per-gpu.sh", portraits, portraits, "--", "--dry-run", "--steps", "100", environ=two_gpus
    )
    assert ran.code == 0, ran.err
    assert ran.out.count("# train\n") == 2
    assert person.run(EXAMPLE / "one-per-gpu.sh", environ=two_gpus).code == 2
