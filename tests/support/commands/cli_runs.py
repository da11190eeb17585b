"""A home, and commands in it as people run them: a process, its exit code, its two streams."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stationmaster.control.worker.background import running_worker
from stationmaster.model import Job
from stationmaster.providers.labelled_processes import processes_of
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server, stationmaster
from tests.support.killing import kill
from tests.support.waiting import until

COMMAND = str(Path(sys.executable).with_name("stationmaster"))
"""What was installed, for tests about the start of a process; `own_command` of the server of commands is cheaper."""
QUICK = ("--steps", "20", "-p", "seconds_per_step=0", "-p", "save_every=10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Home:
    """A new home, with a quick background worker that leaves soon; everything ends with the block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "home"
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self.environ = {
            **kept,
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(self.path),
            "STATIONMASTER_WORKER__LINGER": "1s",
            "STATIONMASTER_WORKER__LOOK": "0.5",
            "STATIONMASTER_MONITORING__POLL_INTERVAL": "0.5",
            "STATIONMASTER_MONITORING__WATCH_INTERVAL": "0.5",
        }

    def __enter__(self) -> Home:
        return self

    def __exit__(self, *_: object) -> None:
        if "store" in self.__dict__:
            self.store.close()
        self.end_worker()
        machines = self.path / "machines"
        for machine in machines.iterdir() if machines.is_dir() else ():
            for pid in processes_of(machine.name):
                kill(pid)

    def run(self, *arguments: str, cwd: Path | None = None, **environ: str) -> Ran:
        """Run one command to its end; it must never print a traceback."""
        done = stationmaster(*arguments, environ={**self.environ, **environ}, cwd=cwd or self.folder)
        return ran_cleanly(done)

    def run_installed(self, *arguments: str, cwd: Path | None = None) -> Ran:
        """The same with the command that was installed, from its very start."""
        done = subprocess.run(
            [COMMAND, *arguments],
            env=self.environ,
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return ran_cleanly(done)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return started(*arguments, environ=self.environ, cwd=self.folder)

    def show(self, job_id: str) -> Any:
        return self.run("show", job_id, "--json").json()

    @cached_property
    def store(self) -> Store:
        """The home's store, open as long as the block lasts: cheaper than a command where a test only waits."""
        return Store(Database(f"sqlite:///{self.path}/stationmaster.db"))

    def job(self, job_id: str) -> Job:
        return self.store.jobs.get(job_id)

    def has_checkpoint(self, job_id: str) -> bool:
        return bool(self.store.checkpoints.of_job(job_id))

    def worker_pid(self) -> int | None:
        found = running_worker(self.path)
        return found.pid if found is not None and found.pid else None

    def end_worker(self) -> None:
        if (pid := self.worker_pid()) is not None:
            kill(pid, signal.SIGTERM)
            until(lambda: self.worker_pid() != pid, what="the worker has left")


def started(*arguments: str, environ: Mapping[str, str], cwd: Path) -> subprocess.Popen[str]:
    """Start a command and let it run; the caller ends it. Killed, it is gone a moment later."""
    return subprocess.Popen(
        [command_server().own_command, *arguments],
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran_cleanly(done: subprocess.CompletedProcess[str]) -> Ran:
    assert "Traceback" not in done.stderr, done.stderr
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def without_ages(printed: str) -> str:
    """The same for a command that ran a moment later.

    >>> without_ages("TIME       USER\\n59 s ago   ann") == without_ages("TIME        USER\\n1 min ago   ann")
    True
    """
    still = re.sub(r"\b\d+ (?:s|min) ago\b", "a moment ago", printed)
    return re.sub(r" +", " ", still)  # a column is as wide as the longest of its times
