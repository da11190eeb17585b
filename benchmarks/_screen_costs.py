"""What a program on a terminal costs: processor, memory, bytes written, the first picture, and the answer to a key."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from _process import cpu_seconds
from tests.support.terminal.pty_program import PtyProgram

COLUMNS, ROWS = 200, 60
_SETTLE_SECONDS = 5.0  # a program that starts is not one that runs
_MIB = 1 << 10  # in the kernel's kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`shows` is a pattern of the first picture that has data in it."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    shows: str
    cwd: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    first_paint_seconds: float
    cpu_percent: float
    resident_mib: float
    peak_mib: float
    bytes_per_second: float
    key_seconds: float | None = None  # of 20 keys all but the slowest take no longer
    idle_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A key, and a pattern in what it causes to be written."""

    key: str
    answer: str


def costs_of(program: Program, *, seconds: float, presses: Sequence[Press] = (), pause_key: str | None = None) -> Costs:
    """Run it for so long at a terminal of 200×60; then press keys while it works, then pause it."""
    with PtyProgram(program.argv, environ=program.environ, cwd=program.cwd, columns=COLUMNS, rows=ROWS) as running:
        painted = running.until_written(program.shows, seconds=60.0) - running.started_at
        running.read_for(_SETTLE_SECONDS)
        percent, written = _measured(running, seconds)
        resident, peak = _memory_mib(running.pid)
        answers = [_answered(running, press) for press in presses]
        idle = None
        if pause_key is not None:
            running.press(pause_key)
            running.read_for(_SETTLE_SECONDS)
            idle, _ = _measured(running, seconds / 2)
    return Costs(
        first_paint_seconds=painted,
        cpu_percent=percent,
        resident_mib=resident,
        peak_mib=peak,
        bytes_per_second=written,
        key_seconds=statistics.quantiles(answers, n=20)[-1] if answers else None,
        idle_percent=idle,
    )


def _measured(running: PtyProgram, seconds: float) -> tuple[float, float]:
    """Percent of a core and bytes per second, over so many seconds."""
    began, used = time.monotonic(), sum(map(cpu_seconds, _tree(running.pid)))
    written = running.read_for(seconds)
    took = time.monotonic() - began
    return 100 * (sum(map(cpu_seconds, _tree(running.pid))) - used) / took, written / took


def _answered(running: PtyProgram, press: Press) -> float:
    """Seconds from a key to the end of the bytes that show its effect; other updates may come in between."""
    running.read_for(0.13)  # so that keys come at any time of the program's interval
    before = len(running.written)
    pressed = running.press(press.key)
    return running.until_written(press.answer, since=before, seconds=5.0) - pressed


def _memory_mib(pid: int) -> tuple[float, float]:
    """Resident memory of the process and its children, now and at its highest."""
    resident = peak = 0.0
    for each in _tree(pid):
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{each}/status").read_text().splitlines())
        resident += int(lines["VmRSS"].split()[0]) / _MIB
        peak += int(lines["VmHWM"].split()[0]) / _MIB
    return resident, peak


def _tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _tree(int(child)))]
