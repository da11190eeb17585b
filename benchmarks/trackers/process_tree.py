"""Runs a program and waits for every process that it leaves behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_LINGER_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program and the processes it started have ended."""

    exit_code: int
    output: str
    #: Processor time of the processes that outlived the program.
    orphans_cpu_seconds: float


def run_tree(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Finished:
    """Run a program until it and all its descendants have ended; those that linger are killed.

    Call it only from a process that has no other children.
    """
    _adopt_orphans()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(argv, env=dict(env), cwd=cwd, stdout=output, stderr=subprocess.STDOUT)
        exit_code = child.wait()
        orphans_cpu_seconds = _wait_for_orphans()
        output.seek(0)
        return Finished(exit_code, output.read().decode(errors="replace"), orphans_cpu_seconds)


def _adopt_orphans() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wait_for_orphans() -> float:
    """Return the processor seconds of the helpers that outlived the program."""
    ends, cpu = time.monotonic() + _LINGER_SECONDS, 0.0
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu
        if pid:
            cpu += usage.ru_utime + usage.ru_stime
        elif time.monotonic() > ends:
            for orphan in _children():
                os.kill(orphan, signal.SIGKILL)
        else:
            time.sleep(0.02)


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]
