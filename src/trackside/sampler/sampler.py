"""Takes samples of this machine: memory, the training's processes, CPU, GPUs, disk and network."""

from __future__ import annotations

import os
import time
from typing import Callable, TypeVar

from trackside.sampler.linux import LinuxMachine
from trackside.sampler.processes import sums_by_role
from trackside.sampler.sample import GB, IoReading, MemoryReading, ProcessReading, Sample

T = TypeVar("T")


class Sampler:
    """Reads every source once per sample. A source that fails is noted once; its values are then None.

    `pid` is the training's first process, `folder` is where it writes. A quick sampler starts no programs.
    """

    def __init__(
        self,
        pid: int | None,
        *,
        folder: str,
        per_process: bool = True,
        quick: bool = False,
        note: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_process = per_process
        self._note = note
        self._noted: set[str] = set()
        self._machine = LinuxMachine(pid, folder=folder, quick=quick, now=now)

    def take(self, timestamp: float) -> Sample:
        """Return the sample of this moment. Never raises, and waits 2 s at most."""
        machine = self._machine
        nothing: list[ProcessReading] = []
        processes = self._read("the training's processes", lambda: machine.processes({}), nothing)
        main, workers, count = sums_by_role(processes)
        if not self._per_process and main is not None:
            main, workers, count = main + (workers or 0.0), None, None
        return Sample(
            timestamp=timestamp,
            memory=self._read("memory", machine.memory, MemoryReading()),
            main_process_memory_gb=main,
            worker_memory_gb=workers,
            worker_count=count,
            cpu_utilization_percent=self._read("the CPU", machine.cpu_percent, None),
            processes=tuple(processes) if self._per_process else (),
            io=self._read("disk and network", machine.io, IoReading()),
        )

    def facts(self) -> dict[str, str]:
        """Return what this machine knows for the table RunInfo."""
        known: dict[str, float | None] = {
            "memory_limit_gb": self._memory_limit_gb(),
            "cpu_cores": self._machine.cpu_cores,
            "shm_size_gb": _shm_size_gb(),
            "utc_offset_seconds": time.localtime().tm_gmtoff,
        }
        return {key: "%.10g" % value for key, value in known.items() if value is not None}

    def close(self) -> None:
        """Release what the sources hold."""

    def _memory_limit_gb(self) -> float | None:
        limit = self._machine.memory_limit_gb
        total = self._read("memory", self._machine.memory, MemoryReading()).total_gb
        return limit if limit is not None and (total is None or limit < total) else None

    def _read(self, source: str, read: Callable[[], T], missing: T) -> T:
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - whatever fails here must not disturb the training
            self._note_once("%s cannot be read: %s" % (source, error or type(error).__name__))
            return missing

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)


def _shm_size_gb() -> float | None:
    try:
        seen = os.statvfs("/dev/shm")
    except OSError:
        return None
    return seen.f_blocks * seen.f_frsize / GB
