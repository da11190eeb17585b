"""Runs a command at a terminal: records what it shows and when, and types answers."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self


class AtTerminal:
    """A command at a terminal; its standard error is a file. Killed at the end of the block at the latest."""

    def __init__(self, argv: Sequence[str], *, environ: Mapping[str, str], cwd: Path, errors: IO[str]) -> None:
        self._terminal, theirs = pty.openpty()
        self.shown = ""
        self.started_at = time.monotonic()
        self._process = subprocess.Popen(
            [*argv], env=dict(environ), cwd=cwd, stdin=theirs, stdout=theirs, stderr=errors, start_new_session=True
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._terminal)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def until_shown(self, pattern: str, *, seconds: float) -> float:
        """Wait for this text; returns when it appeared, by the monotonic clock."""
        ends = time.monotonic() + seconds
        while not re.search(pattern, self.shown):
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, ends - time.monotonic()))
            more = self._read() if ready else ""
            if not more:
                raise SystemExit(f"the command never showed {pattern!r}:\n{self.shown}")
            self.shown += more
        return time.monotonic()

    def type(self, line: str) -> float:
        os.write(self._terminal, f"{line}\n".encode())
        return time.monotonic()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def _read(self) -> str:
        try:
            return os.read(self._terminal, 65536).decode("utf-8", "replace")
        except OSError:  # the program has ended
            return ""
