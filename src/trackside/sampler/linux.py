"""The readings of a Linux machine besides its GPUs."""

from __future__ import annotations

import os
from typing import Callable, Mapping

from trackside.sampler.cgroups import control_groups
from trackside.sampler.cpu import CpuMeter, allowed_cores, usable_cores
from trackside.sampler.disk_and_network import IoMeter
from trackside.sampler.memory import read_memory
from trackside.sampler.processes import ProcessTree
from trackside.sampler.sample import IoReading, MemoryReading, ProcessReading

_HOSTS_NAMESPACE = "pid:[4026531836]"  # the kernel's number of the first one


class LinuxMachine:
    """Reads /proc and the control groups of the training."""

    def __init__(self, pid: int | None, *, folder: str, now: Callable[[], float], proc: str = "/proc") -> None:
        groups = control_groups("self" if pid is None else pid, proc=proc)
        quota = groups.cpu_quota()
        self._proc = proc
        self._groups = groups
        self._sees_hosts_pids = _link(proc + "/self/ns/pid") == _HOSTS_NAMESPACE
        self._cpu = CpuMeter(now=now, quota=quota, allowed=allowed_cores(pid), proc=proc)
        self._io = IoMeter(folder, now=now, proc=proc)
        self._tree = None if pid is None else ProcessTree(pid, now=now, proc=proc)
        self.memory_limit_gb = groups.memory_limit_gb()
        self.cpu_cores = usable_cores(pid, quota)
        self.has_unified_memory = False  # if so, its GPU's driver reports it

    def memory(self) -> MemoryReading:
        """Return the machine's memory, with the swap of the training's own container: the rest is other people's."""
        own_swap = self._groups.swap_used_gb() if self.memory_limit_gb is not None else None
        reading = read_memory(self._proc)
        return reading if own_swap is None else reading._replace(swap_used_gb=own_swap)

    def memory_kills(self) -> int | None:
        return self._groups.memory_kills()

    def cpu_percent(self) -> float | None:
        return self._cpu.read()

    def io(self) -> IoReading:
        return self._io.read()

    def processes(self, gpu_memory_gb: Mapping[int, float]) -> list[ProcessReading]:
        """Return the training's processes, each with its part of this GPU memory by pid."""
        if self._tree is None:
            return []
        return self._tree.read(gpu_memory_gb={pid: gb for pid, gb in gpu_memory_gb.items() if self._is_own_pid(pid)})

    def _is_own_pid(self, pid: int) -> bool:
        """Return whether the driver's pid is one of ours. In a container it may be the host's, for another process."""
        return self._sees_hosts_pids or _uses_gpu("%s/%d/fd" % (self._proc, pid))


def _uses_gpu(folder: str) -> bool:
    try:
        files = os.listdir(folder)
    except OSError:
        return False
    return any(_link("%s/%s" % (folder, file)).startswith("/dev/nvidia") for file in files)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
