"""Takes samples of this machine: memory, the training's processes, CPU, GPUs, disk and network."""

from __future__ import annotations

import os
import sys
import time
from typing import Callable, Mapping, Protocol, TypeVar

from trackside.sampler.gpu_answer import GpuAnswer
from trackside.sampler.gpus import Gpus, UnifiedMemory, without_memory
from trackside.sampler.processes import sums_by_role
from trackside.sampler.sample import GB, IoReading, MemoryReading, ProcessReading, Sample

T = TypeVar("T")


class Machine(Protocol):
    """What a system reads besides GPUs. Its methods raise OSError or ValueError if they cannot."""

    memory_limit_gb: float | None
    cpu_cores: float
    has_unified_memory: bool

    def memory(self) -> MemoryReading: ...

    def processes(self, gpu_memory_gb: Mapping[int, float]) -> list[ProcessReading]: ...

    def cpu_percent(self) -> float | None: ...

    def io(self) -> IoReading: ...

    def memory_kills(self) -> int | None: ...


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
        gpus: Gpus | None = None,
    ) -> None:
        self._per_process = per_process
        self._note = note
        self._noted: set[str] = set()
        self._machine = _machine(pid, folder=folder, quick=quick, now=now)
        self._gpus = gpus or Gpus(quick=quick, now=now, note=self._note_once)
        self._unified = UnifiedMemory()
        self._kills_before = self._all_memory_kills()

    def take(self, timestamp: float) -> Sample:
        """Return the sample of this moment. Never raises, and waits 2 s at most."""
        machine = self._machine
        memory = self._read("memory", machine.memory, MemoryReading())
        answer = self._read("the GPUs", self._gpus.read, GpuAnswer())
        is_unified = self._unified.is_seen(answer, memory)
        nothing: list[ProcessReading] = []
        on_gpus = answer.process_memory_gb
        processes = self._read("the training's processes", lambda: machine.processes(on_gpus), nothing)
        main, workers, count = sums_by_role(processes)
        if not self._per_process and main is not None:
            main, workers, count = (None if workers is None else main + workers), None, None
        return Sample(
            timestamp=timestamp,
            memory=memory,
            main_process_memory_gb=main,
            worker_memory_gb=workers,
            worker_count=count,
            cpu_utilization_percent=self._read("the CPU", machine.cpu_percent, None),
            gpus=without_memory(answer.gpus) if is_unified else answer.gpus,
            processes=tuple(processes) if self._per_process else (),
            io=self._read("disk and network", machine.io, IoReading()),
        )

    def facts(self) -> dict[str, str]:
        """Return what this machine knows for the table RunInfo. Never raises, and waits 2 s at most."""
        memory = self._read("memory", self._machine.memory, MemoryReading())
        answer = self._read("the GPUs", self._gpus.last, None)
        limit = self._machine.memory_limit_gb
        known: dict[str, float | None] = {
            "memory_limit_gb": limit if limit is not None and limit < (memory.total_gb or limit + 1.0) else None,
            "cpu_cores": self._machine.cpu_cores,
            "shm_size_gb": _shm_size_gb(),
            "utc_offset_seconds": time.localtime().tm_gmtoff,
        }
        if answer is not None:
            known["gpu_count"] = max(len(answer.gpus), int(self._machine.has_unified_memory))
            known["gpu_rated_clock_mhz"] = answer.rated_clock_mhz
            known["gpu_rated_power_watts"] = answer.rated_power_watts
        facts = {key: "%.10g" % value for key, value in known.items() if value is not None}
        if self._machine.has_unified_memory or answer is not None:
            facts["platform"] = self._platform(answer or GpuAnswer(), memory)
        return facts

    def memory_kills(self) -> int:
        """Return how many processes around the training the kernel has killed for lack of memory since the beginning.

        They may be another job's where several share a control group. 0 where the kernel does not count.
        """
        now, before = self._all_memory_kills(), self._kills_before
        return now - before if now is not None and before is not None else 0

    def close(self) -> None:
        """Release what the sources hold."""
        self._gpus.close()

    def _all_memory_kills(self) -> int | None:
        return self._read("the kernel's counter of lack of memory", self._machine.memory_kills, None)

    def _platform(self, answer: GpuAnswer, memory: MemoryReading) -> str:
        if self._machine.has_unified_memory:
            return "unified"
        if not answer.gpus:
            return "cpu"
        is_unified = self._unified.was_seen
        if is_unified is None:
            is_unified = self._unified.is_seen(answer, memory)
        return "unified" if is_unified else "discrete"

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


def _machine(pid: int | None, *, folder: str, quick: bool, now: Callable[[], float]) -> Machine:
    if sys.platform == "darwin":
        from trackside.sampler.macos import MacMachine

        return MacMachine(pid, folder=folder, quick=quick, now=now)
    from trackside.sampler.linux import LinuxMachine

    return LinuxMachine(pid, folder=folder, now=now)


def _shm_size_gb() -> float | None:
    try:
        seen = os.statvfs("/dev/shm")
    except OSError:
        return None
    return seen.f_blocks * seen.f_frsize / GB
