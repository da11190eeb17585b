"""A program at a pseudo-terminal of a fixed size: what it writes is counted and timed, not drawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from tests.support.waiting import PATIENCE_SECONDS

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()][AB0]|[=>78])"
)


class PtyProgram:
    """A program at a terminal. Killed at the end of the block at the latest; `errors` gets its standard error."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: Path,
        columns: int = 200,
        rows: int = 60,
        errors: IO[bytes] | None = None,
    ) -> None:
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.written = bytearray()
        self.started_at = time.monotonic()
        self._process = subprocess.Popen(
            [*argv],
            env={"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ},
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=errors or theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._terminal)

    @property
    def pid(self) -> int:
        return self._process.pid

    def read_for(self, seconds: float) -> int:
        """Take what it writes for so long; returns how many bytes that were."""
        before, ends = len(self.written), time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0 and self._take(left):
            pass
        return len(self.written) - before

    def until_written(self, pattern: str, *, since: int = 0, seconds: float = PATIENCE_SECONDS) -> float:
        """Wait for text that matches, after so many bytes; returns when it came, by the monotonic clock."""
        ends = time.monotonic() + seconds
        while not re.search(pattern, self.text(since=since)):
            if not self._take(max(0.0, ends - time.monotonic())):
                raise AssertionError(f"never written: {pattern!r}\n{self.text(since=since)[-3000:]}")
        return time.monotonic()

    def until_quiet(self, quiet_seconds: float, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Take what it writes until it has written nothing for so long."""
        ends = time.monotonic() + seconds
        while self._take(quiet_seconds):
            assert time.monotonic() < ends, "it never stops to write"

    def press(self, keys: str) -> float:
        os.write(self._terminal, keys.encode())
        return time.monotonic()

    def text(self, *, since: int = 0) -> str:
        """What it wrote after so many bytes, without escape sequences."""
        return _ESCAPES.sub("", self.written[since:].decode("utf-8", "replace"))

    def wait(self, seconds: float) -> int:
        """Take what it writes to its end; returns its exit code."""
        self.read_for(0.0)
        ends = time.monotonic() + seconds
        while self._process.poll() is None:
            assert time.monotonic() < ends, f"it does not end: {self.text()[-1000:]}"
            self._take(0.05)
        return self._process.returncode

    def _take(self, seconds: float) -> bool:
        """Whether something came within this time."""
        ready, _, _ = select.select([self._terminal], [], [], seconds)
        if not ready:
            return False
        try:
            more = os.read(self._terminal, 1 << 16)
        except OSError:  # no process has the terminal open any more
            return False
        self.written += more
        return bool(more)
