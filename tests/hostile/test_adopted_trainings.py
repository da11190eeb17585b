"""A machine that lies about a training that was started by hand: nothing is followed, waited for, or signalled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines.trackside_bench import Bench, bench, trackside_server

OURSELVES = os.getpid()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path / "job", pyz=trackside_server().archive, is_forked=True) as made:
        yield made


def look(job: Bench, folder: Path, **changes: Any) -> Any:
    asked = {"log": f"{folder}/*.log", "pid_file": None, "output": f"{folder}/out", **changes}
    return job.call("look", stdin=json.dumps(asked).encode())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("1", "first process"),
        ("0", "first process"),
        ("-1", "does not contain a process id"),
        ("rm -rf /", "does not contain a process id"),
        ("", "does not contain a process id"),
        ("9" * 30, "does not contain a process id"),
        ("999999999", "no process has the id"),
        pytest.param(str(OURSELVES), "belongs to this login itself", id="ourselves"),
        ("2", "kernel|no process|first process|belongs"),
    ],
)
def test_a_pid_file_that_lies_names_no_training(job: Bench, tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "run.log").write_text("step 1\n")
    (tmp_path / "pid").write_text(content)
    found = look(job, tmp_path, pid_file=str(tmp_path / "pid"))
    assert found["process"] is None
    assert any(part in found["problem"] for part in problem.split("|")), found["problem"]


def test_a_pid_file_that_is_a_fifo_is_not_waited_for(job: Bench, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("step 1\n")
    os.mkfifo(tmp_path / "pid")
    assert "not a regular file" in look(job, tmp_path, pid_file=str(tmp_path / "pid"))["problem"]


def test_only_regular_files_are_logs(job: Bench, tmp_path: Path) -> None:
    """A FIFO would block, a link may lead to what only the login may read, a device never ends."""
    secret = tmp_path / "secret"
    secret.write_text("root:hash")
    os.mkfifo(tmp_path / "a.log")
    (tmp_path / "b.log").symlink_to(secret)
    (tmp_path / "c.log").symlink_to("/dev/zero")
    (tmp_path / "d.log").mkdir()
    assert look(job, tmp_path)["logs"] == []


def test_links_in_the_output_folder_lead_nowhere(job: Bench, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "private.safetensors").write_bytes(b"private")
    out = tmp_path / "out"
    out.mkdir()
    (out / "all").symlink_to(elsewhere)
    (out / "one.safetensors").symlink_to(elsewhere / "deep" / "private.safetensors")
    (out / "round").symlink_to(out)
    os.mkfifo(out / "pipe.safetensors")
    (out / "true.safetensors").write_bytes(b"\0" * 8)
    (tmp_path / "run.log").write_text("step 1\n")
    assert look(job, tmp_path)["checkpoints"] == 1
    pattern = "adopted/**/*.safetensors"
    attach = {"process": None, "log": f"{tmp_path}/*.log", "output": str(out)}
    job.plan(
        {"name": "train", "training": True, "attach": attach}, outputs=[{"pattern": pattern, "kind": "checkpoint"}]
    )
    (job.root / "adopted").symlink_to(out)
    assert [each["path"] for each in job.call("inventory")["outputs"]] == ["adopted/true.safetensors"]


def test_a_folder_with_very_many_files_is_looked_at_only_so_far(job: Bench, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for number in range(51):
        folder = out / f"{number:02d}"
        folder.mkdir(parents=True)
        (folder / "0.safetensors").touch()
        for name in range(1, 1000):
            os.link(folder / "0.safetensors", folder / f"{name}.safetensors")  # takes far less than a new file
    (out / "model.safetensors").write_bytes(b"\0" * 8)
    (tmp_path / "run.log").write_text("step 1\n")
    found = look(job, tmp_path)
    assert 40_000 < found["checkpoints"] < 50_000
    assert found["checkpoint_bytes"] == 8
