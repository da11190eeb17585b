"""GPU readings from nvidia-smi, at most one every few seconds, with a short timeout."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Iterator

from trackside.machine.visible_gpus import Visible, visible_nvidia_gpus
from trackside.records import remove_file

REFRESH_SECONDS = 5.0
_LIMIT_SECONDS = 2.0
_STALE_SECONDS = 15.0
CSV_FORMAT = "--format=csv,noheader,nounits"
_COLUMNS = 5
_QUERY = ("--query-gpu=index,name,memory.used,memory.total,utilization.gpu", CSV_FORMAT)


class GpuProbe:
    """Runs one nvidia-smi at a time and leaves its output in a file; `poll` never waits."""

    def __init__(self, answer_path: str) -> None:
        self._answer = answer_path
        self._unfinished = "%s.%d" % (answer_path, os.getpid())
        self._visible = visible_nvidia_gpus(os.environ)
        self._program = None if self._visible == () else find_on_path("nvidia-smi")
        self._pid = 0
        self._killed = 0
        self._asked_at = 0.0

    def poll(self, monotonic: float) -> bool:
        """Start nvidia-smi when it is due and take its output when it has ended; True while it runs."""
        if self._pid:
            self._take_answer(monotonic)
        elif self._is_due(monotonic) and self._is_gone() and self._program:
            self._ask(self._program, monotonic)
        return bool(self._pid)

    def ask_and_wait(self) -> None:
        """Get one fresh answer, or none within the timeout."""
        while self.poll(time.monotonic()):
            time.sleep(0.01)

    def _is_due(self, monotonic: float) -> bool:
        return not self._asked_at or monotonic - self._asked_at >= REFRESH_SECONDS

    def _is_gone(self) -> bool:
        """Return whether one that was killed has ended. In a driver that hangs it does not."""
        if self._killed and os.waitpid(self._killed, os.WNOHANG)[0]:
            self._killed = 0
        return not self._killed

    def _ask(self, program: str, monotonic: float) -> None:
        self._asked_at = monotonic
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            arguments = (program, *_QUERY, *only(self._visible))
            self._pid = os.posix_spawn(program, arguments, os.environ, file_actions=actions)
        except OSError:
            self._program = None

    def _take_answer(self, monotonic: float) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid and monotonic - self._asked_at > _LIMIT_SECONDS:
            os.kill(self._pid, signal.SIGKILL)
            self._killed, pid, status = self._pid, self._pid, signal.SIGKILL
        if not pid:
            return
        self._pid = 0
        if status == 0:
            os.replace(self._unfinished, self._answer)
        else:
            remove_file(self._unfinished)


def only(visible: Visible) -> tuple[str, ...]:
    """Return the option with which nvidia-smi tells of these GPUs alone."""
    return ("--id=%s" % ",".join(visible),) if visible else ()


def read_gpus(answer_path: str, *, wall: float) -> list[dict[str, Any]] | None:
    """Return the GPUs of the last answer; None when there is no recent one."""
    try:
        with open(answer_path, encoding="utf-8", errors="replace") as file:
            is_fresh = abs(wall - os.fstat(file.fileno()).st_mtime) <= _STALE_SECONDS
            return parse_gpus(file.read()) if is_fresh else None
    except OSError:
        return None


def parse_gpus(text: str) -> list[dict[str, Any]]:
    """Return one entry per line of nvidia-smi's CSV; a value that it does not know is None.

    >>> parse_gpus("0, NVIDIA H200, 12, 143771, [N/A]")[0]["utilization_percent"] is None
    True
    """
    return [
        {
            "index": _number(index),
            "name": name,
            "memory_used_mib": _number(used),
            "memory_total_mib": _number(total),
            "utilization_percent": _number(utilization),
        }
        for index, name, used, total, utilization in csv_rows(text, columns=_COLUMNS)
    ]


def csv_rows(text: str, *, columns: int) -> Iterator[list[str]]:
    """Return the lines of nvidia-smi's CSV that have all columns. The second is a name and may hold commas.

    >>> list(csv_rows("0, Odd, Name, 12\\nnonsense", columns=3))
    [['0', 'Odd, Name', '12']]
    """
    for line in text.splitlines():
        fields = line.split(", ")
        surplus = len(fields) - columns
        if surplus >= 0:
            yield [fields[0], ", ".join(fields[1 : 2 + surplus]), *fields[2 + surplus :]]


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def find_on_path(name: str) -> str | None:
    """Return the path of a program; None if no executable one is found."""
    candidates = (os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep))
    return next((path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)), None)
