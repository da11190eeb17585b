"""Hours that pass on a simulated machine at once, as far as its guard can tell."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.waiting import until

_HOURS_SECONDS = 12 * 3600.0


def let_guard_act(disk: Path) -> None:
    """For a machine that is a folder: once its training is over, its guard finds that nobody came for hours."""
    until(lambda: not any(map(_is_running, disk.rglob("training.pid"))), "the end of the training")
    clock = disk / "root" / "proc" / "uptime"
    later = clock.with_name("later")
    later.write_text(_later_uptime())
    later.replace(clock)


def let_guard_act_inside(processes: Sequence[int]) -> None:
    """The same for a machine with a file system of its own, by one of its processes; its training is over.

    Some of them may have ended since they were listed, and let nobody in.
    """
    assert any(map(_enters_and_moves_its_clock, processes)), processes


def _enters_and_moves_its_clock(process: int) -> bool:
    script = 'echo "$1" > /run/uptime && mount --bind /run/uptime /proc/uptime'
    enter = ["nsenter", "-t", str(process), "-m", "sh", "-c", script, "sh", _later_uptime()]
    return subprocess.run(enter, check=False).returncode == 0


def _later_uptime() -> str:
    seconds = float(Path("/proc/uptime").read_text().split()[0]) + _HOURS_SECONDS
    return f"{seconds:.2f} 0.00\n"


def _is_running(file: Path) -> bool:
    return Path("/proc", file.read_text().split()[0]).exists()
