"""Readings of the machine are understood or left out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trackside.machine.gpu import GpuProbe, parse_gpus, read_gpus
from trackside.machine.readings import parse_meminfo, read_disk


def test_gpus_are_read_line_by_line_and_names_may_hold_commas() -> None:
    text = "0, NVIDIA H200, 12, 143771, 35\n1, Odd, Name, 1, 2, [N/A]\nnonsense\n"
    assert parse_gpus(text) == [
        {
            "index": 0,
            "name": "NVIDIA H200",
            "memory_used_mib": 12,
            "memory_total_mib": 143771,
            "utilization_percent": 35,
        },
        {"index": 1, "name": "Odd, Name", "memory_used_mib": 1, "memory_total_mib": 2, "utilization_percent": None},
    ]


def program(folder: Path, script: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)


@pytest.fixture
def only_on_path(tmp_path: Path) -> Iterator[Path]:
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}:{before}"
    yield tmp_path
    os.environ["PATH"] = before


def test_the_answer_of_nvidia_smi_is_kept_for_a_while(only_on_path: Path) -> None:
    program(only_on_path, "echo '0, Fake, 1, 2, 3'")
    answer = str(only_on_path / "gpu.csv")
    GpuProbe(answer).ask_and_wait()
    found = read_gpus(answer, wall=time.time())
    assert found is not None
    assert found[0]["name"] == "Fake"
    assert read_gpus(answer, wall=time.time() + 3600) is None


def test_a_failing_nvidia_smi_leaves_no_answer(only_on_path: Path) -> None:
    program(only_on_path, "echo half; exit 9")
    GpuProbe(str(only_on_path / "gpu.csv")).ask_and_wait()
    assert [path.name for path in only_on_path.iterdir()] == ["nvidia-smi"]


def test_a_hanging_nvidia_smi_is_given_up(only_on_path: Path) -> None:
    program(only_on_path, "exec sleep 1000")
    probe = GpuProbe(str(only_on_path / "gpu.csv"))
    assert probe.poll(100.0)
    assert probe.poll(101.9)
    assert not probe.poll(102.1)
    assert [path.name for path in only_on_path.iterdir()] == ["nvidia-smi"]


def test_memory_that_the_system_does_not_tell_is_none() -> None:
    assert parse_meminfo("nothing here") is None


def test_the_disk_has_room(tmp_path: Path) -> None:
    disk = read_disk(str(tmp_path))
    assert 0 < disk["free_bytes"] <= disk["total_bytes"]
