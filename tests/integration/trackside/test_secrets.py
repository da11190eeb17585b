"""Secrets reach the steps that name them and stay nowhere else."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.machines.trackside_bench import Bench, is_alive, step
from tests.support.waiting import until
from trackside.root import Root
from trackside.steps.handover import leave_secrets
from trackside.steps.plan import read_plan
from trackside.steps.supervise import Supervisor
from trackside.steps.supervisor_lock import is_supervised

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def secret(job: Bench) -> str:
    """A value that no other test has, however many run beside this one."""
    return "s3cr3t-" + hashlib.sha256(str(job.root).encode()).hexdigest()


def left_behind(job: Bench, secret: str) -> list[Path]:
    """Every file, in the job's folder or in memory, that holds the secret."""
    return [path for path in [*SHARED_MEMORY.glob("trackside-*"), *job.root.rglob("*")] if holds(path, secret)]


def holds(path: Path, secret: str) -> bool:
    try:
        return path.is_file() and secret.encode() in path.read_bytes()
    except FileNotFoundError:
        return False


def test_a_step_gets_the_secrets_it_names_and_no_others(job: Bench, secret: str) -> None:
    show = 'echo "${HF_TOKEN:-none} ${OTHER:-none}"'
    job.plan(step("with", show, secrets=["HF_TOKEN"], env={"HF_TOKEN": "from the plan"}), step("without", show))
    assert job.start(HF_TOKEN=secret, OTHER="o")["needs_secrets"] == []
    job.until_finished()
    assert job.text() == f"{secret} none\nnone none\n"


def test_secrets_are_in_no_file_and_no_command_line(job: Bench, secret: str) -> None:
    job.plan(step("train", "exec sleep 1000", secrets=["HF_TOKEN"]))
    job.start(HF_TOKEN=secret)
    running = job.until_running()
    assert left_behind(job, secret) == []
    for pid in (running["pid"], job.shim_pid(), job.supervisor_pid()):
        assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_supervisor_without_the_secrets_says_so_and_waits(job: Bench) -> None:
    job.plan(step("train", "echo ran", secrets=["A", "B"]))
    assert job.start()["needs_secrets"] == ["A", "B"]
    assert job.start(A="1")["needs_secrets"] == ["B"]
    assert job.status()["steps"][0]["state"] == "pending"
    assert job.start(B="2")["needs_secrets"] == []
    assert job.until_finished()["finished"]["result"] == "done"


def test_a_restarted_supervisor_asks_again_and_the_running_step_keeps_its_own(job: Bench, secret: str) -> None:
    script = "while [ ! -e ../go ]; do sleep 0.05; done; echo $TOKEN"
    job.plan(step("train", script, secrets=["TOKEN"]), step("publish", "echo $TOKEN", secrets=["TOKEN"]))
    job.start(TOKEN=secret)
    job.until_running()
    job.kill_supervisor()
    assert job.status()["needs_secrets"] == ["TOKEN"]
    assert job.start()["needs_secrets"] == ["TOKEN"]
    (job.root / "go").touch()
    until(lambda: job.status()["steps"][0]["state"] == "done")
    assert job.status()["finished"] is None
    job.start(TOKEN="another")
    job.until_finished()
    assert job.text() == f"{secret}\nanother\n"


def test_secrets_for_a_finished_plan_are_left_nowhere(job: Bench, secret: str) -> None:
    job.plan(step("train", "true"))
    job.start()
    job.until_finished()
    job.start(TOKEN=secret)
    assert left_behind(job, secret) == []


def test_secrets_for_a_finished_plan_are_left_nowhere_while_its_supervisor_ends(job: Bench, secret: str) -> None:
    job.plan(step("train", "while [ ! -e ../go ]; do sleep 0.05; done"))
    job.start()
    job.until_running()
    os.kill(job.supervisor_pid(), signal.SIGSTOP)
    try:
        (job.root / "go").touch()
        job.until_finished()
        job.start(TOKEN=secret)
        assert left_behind(job, secret) == []
    finally:
        os.kill(job.supervisor_pid(), signal.SIGCONT)


def test_a_supervisor_discards_secrets_that_came_after_its_last_look(job: Bench, secret: str) -> None:
    job.plan(step("train", "true"))
    job.start()
    job.until_finished()
    root = Root(str(job.root))
    until(lambda: not is_supervised(root), "the supervisor's end")
    leave_secrets(root, {"TOKEN": secret})
    assert left_behind(job, secret) != []
    Supervisor(root, read_plan(root)).finish()
    assert left_behind(job, secret) == []


def test_secrets_wait_in_a_private_file_that_disappears_when_taken(job: Bench, secret: str) -> None:
    job.plan(step("train", "exec sleep 1000", secrets=["TOKEN"]))
    job.start()
    pid = job.supervisor_pid()
    os.kill(pid, 19)
    try:
        call = job.popen("start", "--secrets-stdin", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        answer, _ = call.communicate(json.dumps({"secrets": {"TOKEN": secret}}).encode())
        assert json.loads(answer)["needs_secrets"] == []
        assert [stat.S_IMODE(path.stat().st_mode) for path in left_behind(job, secret)] == [0o600]
    finally:
        os.kill(pid, 18)
    job.until_running()
    until(lambda: left_behind(job, secret) == [], "the end of the private file")
    assert is_alive(pid)


def test_nonsense_on_stdin_is_refused_without_repeating_it(job: Bench, secret: str) -> None:
    job.plan(step("train", "true"))
    for nonsense in (
        b"{" + secret.encode(),
        b'{"secrets": {"A": 1}}',
        b'{"secrets": ["' + secret.encode() + b'"]}',
        b"",
    ):
        answer = job.run("start", "--secrets-stdin", stdin=nonsense)
        assert (answer.returncode, answer.stdout) == (2, b"")
        assert secret.encode() not in answer.stderr
    assert job.status()["started"] is False
