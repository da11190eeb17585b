"""The worker that `train` leaves behind: one per home, on its own, found again, replaced when it is old."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from stationmaster.model import Note, State
from stationmaster.store.outbox import NewMessage
from tests.support.commands.cli_runs import COMMAND, QUICK, Home
from tests.support.waiting import until

# Takes the home's lock as a worker of an old version would, and leaves when it is asked to.
_OLD_WORKER = """
import fcntl, json, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
lock = open(sys.argv[1], "a+")
fcntl.flock(lock, fcntl.LOCK_EX)
lock.seek(0)
lock.truncate()
json.dump({"pid": os.getpid(), "version": "0.0.1", "log": "old.log"}, lock)
lock.flush()
print("ready", flush=True)
signal.sigwait([signal.SIGTERM])
print("asked to leave", flush=True)
"""


def train(pictures: Path, job_id: str, *more: str) -> tuple[str, ...]:
    return ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", job_id, *QUICK, *more)


def test_it_outlives_the_terminal_is_private_and_refuses_company(home: Home, pictures: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND, [COMMAND, *train(pictures, "a", "-p", "fault=stall", "-p", "fault_at=5")], home.environ)
    said = _read_all(terminal)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)  # the terminal is gone: whoever belonged to it is hung up on
    assert os.waitstatus_to_exitcode(status) == 0, said
    worker = home.worker_pid()
    assert worker is not None
    assert f"pid {worker}" in said
    until(lambda: home.job("a").state is State.EXECUTING, what="the job goes on without a terminal")
    assert os.getsid(worker) == worker
    assert (home.path / "worker.log").stat().st_mode & 0o077 == 0
    second = home.run("worker")
    assert (second.code, "already running" in second.out) == (0, True)
    assert home.worker_pid() == worker
    _goes_on_after_a_kill(home, worker)


def _goes_on_after_a_kill(home: Home, worker: int) -> None:
    """Any command that finds work and no worker says so and starts one."""
    os.kill(worker, signal.SIGKILL)
    until(lambda: home.worker_pid() is None, what="the worker is dead")
    ran = home.run("cancel", "a", "--yes")
    assert (ran.code, "had no worker; started one" in ran.err) == (0, True), ran.err
    until(lambda: home.job("a").state is State.ENDED, what="the cancelled job has ended")
    until(lambda: home.worker_pid() is None, what="the second worker has left by itself")


def test_it_sends_at_once_what_a_killed_worker_was_sending(home: Home) -> None:
    """It would stay for the three minutes of that worker's lease on the message, and the person would wait as long."""
    home.path.mkdir(mode=0o700)
    stall = Note(key="event:13", kind="stall", text="Stalled", priority="high", at=1.0, job_id="a")
    text = {
        "key": "event:13",
        "kind": "stall",
        "text": "Stalled",
        "at": 1.0,
        "priority": "high",
        "job_id": "a",
        "more": "",
    }
    home.store.outbox.add([NewMessage(cause="event:13", user="me", purpose="owner", note=stall, message=text)])
    assert home.store.outbox.claim("killed", limit=1, seconds=100_000.0)
    ran = home.run("worker", "--background")
    assert ran.code == 0, ran.err
    assert [one["state"] for one in home.store.outbox.of_job("a")] == ["SENT"]


def _read_all(terminal: int) -> str:
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other side has closed it
            break
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces).decode()


def test_an_older_worker_is_asked_to_leave_and_settings_of_the_folder_hold(home: Home, pictures: Path) -> None:
    """The home and its settings come from a `.env`, relative to the folder where `train` was called."""
    here = home.folder / "project"
    here.mkdir()
    (here / ".env").write_text("STATIONMASTER_HOME=../home\nSTATIONMASTER_LOOPBACK__PRICE_PER_HOUR=0.36\n")
    home.environ.pop("STATIONMASTER_HOME")
    home.path.mkdir()
    assert home.run("trust", cwd=here).code == 0
    old = subprocess.Popen(
        [sys.executable, "-c", _OLD_WORKER, str(home.path / "worker.lock")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert old.stdout is not None
        assert old.stdout.readline() == "ready\n"
        refused = home.run(*train(pictures, "a"), cwd=here)
        assert (refused.code, "pass --yes" in refused.err) == (2, True)  # at that price a person must confirm
        ran = home.run(*train(pictures, "a", "--yes", "--watch", "--json"), cwd=here)
        assert ran.code == 0, ran.err
        assert old.stdout.read() == "asked to leave\n"
        assert old.wait(timeout=150) == 0
    finally:
        old.kill()
        old.wait()
        old.stdout and old.stdout.close()
    data = json.loads(ran.out)
    assert data["outcome"] == "COMPLETED"
    assert data["cost_usd"] > 0
    assert {path.name for path in here.iterdir()} == {".env"}


def test_a_worker_started_before_a_secret_was_set_makes_room_for_one_that_has_it(home: Home, pictures: Path) -> None:
    slow = ("-p", "fault=stall", "-p", "fault_at=5")
    home.environ["STATIONMASTER_MONITORING__POLL_INTERVAL"] = "30"  # nothing is to be learnt of the training
    home.environ["STATIONMASTER_LIMITS__MAX_RENTALS"] = "1"  # the other jobs wait
    assert home.run(*train(pictures, "a", *slow)).code == 0
    until(lambda: home.job("a").state is State.EXECUTING, what="the first training")
    first = home.worker_pid()
    assert home.run(*train(pictures, "b", *slow)).code == 0
    assert home.worker_pid() == first
    home.environ["STATIONMASTER_SECRETS"] = '{"MY_TOKEN": "told-later"}'
    ran = home.run(*train(pictures, "c", *slow))
    assert (ran.code, "worker started in the background" in ran.out) == (0, True), ran.err
    second = home.worker_pid()
    assert second not in (None, first)
    until(lambda: home.job("c").state is State.PROVISIONING, what="the second worker's first job")
    assert home.job("a").attempt == 1, "the training did not notice"
    del home.environ["STATIONMASTER_SECRETS"]
    assert home.run(*train(pictures, "d", *slow)).code == 0
    assert home.worker_pid() == second, "one that can do more stays"
    for name in "abcd":
        assert home.run("cancel", name, "--yes").code == 0
    until(lambda: all(home.job(name).state is State.ENDED for name in "abcd"), what="all have ended")
