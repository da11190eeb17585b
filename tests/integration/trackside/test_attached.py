"""A training that somebody else started is watched by trackside, which never holds or changes it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs.hand_started import HandStarted, hand_started
from tests.support.killing import kill
from tests.support.machines.trackside_bench import Bench, is_alive, log_bytes, until_dead
from tests.support.waiting import until


@pytest.fixture
def training(tmp_path: Path) -> Iterator[HandStarted]:
    with hand_started(tmp_path / "run") as started:
        yield started


def look(job: Bench, training: HandStarted, **changes: Any) -> Any:
    folder = training.folder
    asked = {"log": f"{folder}/logs/*.log", "pid_file": f"{folder}/pid", "output": f"{folder}/out", **changes}
    return job.call("look", stdin=json.dumps(asked).encode())


def attach(job: Bench, found: dict[str, Any]) -> None:
    since = None if found["started_at"] is None else found["started_at"] - 60
    there = {"process": found["process"], "log": found["log"], "output": found["output"], "since": since}
    pattern = "adopted/**/*.safetensors"
    train = {"name": "train", "training": True, "expect": [pattern], "attach": there}
    job.plan(train, outputs=[{"pattern": pattern, "kind": "checkpoint"}])
    job.start()


def test_its_log_and_files_are_reported_and_its_end_is_judged_by_them(job: Bench, training: HandStarted) -> None:
    found = look(job, training, pid_file=None)
    assert (found["how"], found["process"]["pid"], found["writes_log"]) == ("log", training.pid, True)
    attach(job, found)
    until(lambda: b" 5/20 " in log_bytes(job.status({})), "the log so far")
    seen = until(lambda: (now := job.status())["training_alive"] and now, "the training's process on disk")
    assert [output["path"] for output in seen["outputs"]] == ["adopted/cats-000005.safetensors"]
    training.go_on()
    ended = job.until_finished()
    step = ended["steps"][0]
    assert (ended["finished"]["result"], step["exit_known"], step["exit_code"]) == ("done", False, None)
    assert job.text() == (training.folder / "logs/run.log").read_text()


def test_one_whose_log_ends_with_an_exception_has_failed_whatever_it_saved(job: Bench, training: HandStarted) -> None:
    attach(job, look(job, training))
    (training.folder / "crash").touch()
    training.go_on()
    step = job.until_finished()["steps"][0]
    assert (step["state"], step["failure"], step["error"]) == (
        "failed",
        "unknown_exit",
        "RuntimeError: CUDA out of memory",
    )


def test_it_does_not_notice_the_death_of_its_watchers_and_no_line_is_lost(job: Bench, training: HandStarted) -> None:
    attach(job, look(job, training))
    until(lambda: b" 5/20 " in log_bytes(job.status({})), "the log so far")
    for pid in (job.supervisor_pid(), job.shim_pid()):
        kill(pid)
        until_dead(pid)
    assert training.is_alive
    assert job.status()["finished"] is None
    job.start()
    until(lambda: job.status()["supervisor"]["alive"], "a new supervisor")
    kill(job.supervisor_pid())  # with a watcher that it may just have started
    job.start()
    training.go_on()
    assert job.until_finished()["finished"]["result"] == "done"
    assert job.text() == (training.folder / "logs/run.log").read_text()


def test_a_stop_reaches_it_and_not_what_shares_its_group(job: Bench, tmp_path: Path) -> None:
    with hand_started(tmp_path / "first") as training:
        (tmp_path / "both").write_text(
            f"sleep 600 & echo $! > sibling; {shlex.quote(sys.executable)} -c 'import time; time.sleep(600)' "
            "> logs/other.log & echo $! > pid; wait\n"
        )
        shell = subprocess.Popen(["/bin/sh", str(tmp_path / "both")], cwd=training.folder, start_new_session=True)
        try:
            until(lambda: int((training.folder / "pid").read_text() or training.pid) != training.pid, "the pid file")
            pid, sibling = (int((training.folder / name).read_text()) for name in ("pid", "sibling"))
            attach(job, look(job, training))
            job.until_running()
            stopped = job.call("stop", "--grace", "20")
            assert stopped["finished"]["result"] == "stopped"
            assert not is_alive(pid)
            assert is_alive(sibling)
            assert is_alive(shell.pid) or shell.poll() is not None
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


def test_the_end_of_a_process_that_is_not_known_is_never_seen(job: Bench, training: HandStarted) -> None:
    attach(job, {**look(job, training), "process": None})
    until(lambda: job.status()["steps"][0]["state"] == "running", "the watch")
    training.go_on()
    until(lambda: not training.is_alive, "its end")
    until(lambda: b"20/20" in log_bytes(job.status({})), "its last line")
    assert job.status()["finished"] is None
    assert job.call("stop", "--grace", "5")["finished"]["result"] == "stopped"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Runs a line as a person types it; everything in it is ended afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def run(line: str) -> None:
        started.append(subprocess.Popen(["/bin/sh", "-c", line], cwd=tmp_path, start_new_session=True))

    yield run
    for each in started:
        os.killpg(each.pid, signal.SIGKILL)
        each.wait()


def found_by_log(job: Bench, folder: Path) -> Any:
    asked = {"log": f"{folder}/*.log", "output": str(folder), "pid_file": None}
    return until(lambda: (seen := job.call("look", stdin=json.dumps(asked).encode()))["logs"] and seen, "the log")


def test_behind_a_tee_the_training_is_what_it_copies_from(
    job: Bench, tmp_path: Path, shell: Callable[[str], None]
) -> None:
    program = "import os, time; open('who', 'w').write(str(os.getpid())); print(1, flush=True); time.sleep(600)"
    shell(f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} 2>&1 | tee run.log > /dev/null")
    until(lambda: (tmp_path / "run.log").exists() and (tmp_path / "run.log").read_text(), "its first line")
    found = found_by_log(job, tmp_path)
    assert (found["how"], found["process"]["pid"]) == ("log", int((tmp_path / "who").read_text()))


def test_of_several_writers_none_is_guessed(job: Bench, tmp_path: Path, shell: Callable[[str], None]) -> None:
    for _ in range(2):
        shell("exec sleep 600 >> run.log")
    until(lambda: "several processes write" in found_by_log(job, tmp_path)["problem"], "both writers")
    assert found_by_log(job, tmp_path)["process"] is None


def test_without_a_writer_the_training_has_no_process(job: Bench, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("left by one that is gone\n")
    found = found_by_log(job, tmp_path)
    assert (found["process"], found["how"], found["problem"]) == (None, "none", "")
