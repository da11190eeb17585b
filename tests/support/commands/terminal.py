"""A program at a terminal, and a person who answers its questions."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CTRL_C = "\x03"
"""An answer that interrupts the program."""

_INTERRUPT_SECONDS = 10.0  # in which an interrupted program ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """How a program ended, and all that it showed."""

    code: int
    shown: str


def at_terminal(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    cwd: Path,
    answers: Mapping[str, str | Callable[[], str]],
    seconds: float,
) -> Session:
    """Run it to its end. Whenever it has shown one of the questions in `answers`, that answer is typed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*argv], env=dict(environ), cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown, seen, ends, interrupted_at = "", 0, time.monotonic() + seconds, None
    try:
        while True:
            more = _read(ours, until=ends if interrupted_at is None else min(ends, interrupted_at + _INTERRUPT_SECONDS))
            if more is None and interrupted_at is not None and process.poll() is None and time.monotonic() < ends:
                # Readline loses a signal that comes after it has shown the prompt and before it waits for a key.
                interrupted_at = _interrupt(process)
                continue
            if more is None:
                break
            shown += more
            asked = next((question for question in answers if question in shown[seen:]), None)
            if asked is not None:
                seen = len(shown)
                given = answers[asked]
                answer = given if isinstance(given, str) else given()
                if answer == CTRL_C:
                    interrupted_at = _interrupt(process)
                else:
                    os.write(ours, f"{answer}\n".encode())
        assert time.monotonic() < ends, f"after {seconds:g} s it still runs:\n{shown}"
        return Session(code=process.wait(), shown=shown)
    finally:
        os.close(ours)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _interrupt(process: subprocess.Popen[bytes]) -> float:
    os.killpg(process.pid, signal.SIGINT)
    return time.monotonic()


def _read(terminal: int, *, until: float) -> str | None:
    """What was shown next; None at the end of the program or of the time."""
    ready, _, _ = select.select([terminal], [], [], max(0.0, until - time.monotonic()))
    if not ready:
        return None
    try:
        return os.read(terminal, 65536).decode("utf-8", "replace") or None
    except OSError:  # no process has the terminal open any more
        return None
