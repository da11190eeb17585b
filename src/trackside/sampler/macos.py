"""The readings of a Mac, from the programs that come with it.

The outputs are parsed as their manual pages describe them.
"""

from __future__ import annotations

import os
from typing import Callable, Mapping, NamedTuple

from trackside.machine.query import Query
from trackside.sampler.disk_and_network import IoMeter
from trackside.sampler.roles import Seen, roles_of
from trackside.sampler.sample import GB, IoReading, MemoryReading, ProcessReading

_UNITS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30}


class MacPrograms(NamedTuple):
    """Where the programs are."""

    vm_stat: str = "/usr/bin/vm_stat"
    sysctl: str = "/usr/sbin/sysctl"
    ps: str = "/bin/ps"


class MacMachine:
    """Reads memory and processes with programs; a quick sampler starts none and knows only the disk."""

    memory_limit_gb: float | None = None

    def __init__(
        self,
        pid: int | None,
        *,
        folder: str,
        quick: bool,
        now: Callable[[], float],
        programs: MacPrograms = MacPrograms(),  # noqa: B008 - a tuple of constants
    ) -> None:
        self._pid = pid
        self._quick = quick
        self._vm_stat, self._sysctl, self._ps = (Query(path, limit_seconds=0.5) for path in programs)
        self._io = IoMeter(folder, now=now)
        self._processes: dict[int, MacProcess] = {}
        self.cpu_cores = float(os.cpu_count() or 1)
        self.has_unified_memory = os.uname().machine == "arm64"

    def memory(self) -> MemoryReading:
        if self._quick:
            return MemoryReading()
        return parse_mac_memory(_ask(self._vm_stat), _ask(self._sysctl, "-n", "hw.memsize", "vm.swapusage"))

    def processes(self, gpu_memory_gb: Mapping[int, float]) -> list[ProcessReading]:
        if self._quick:
            return []
        self._processes = parse_ps(_ask(self._ps, "-axo", "pid,ppid,rss,%cpu,command"))
        return [] if self._pid is None else readings_of_tree(self._processes, self._pid, gpu_memory_gb)

    def cpu_percent(self) -> float | None:
        """Return how busy all cores are, by the processes that were read last."""
        if not self._processes:
            return None
        busy = sum(process.cpu_percent for process in self._processes.values())
        return min(100.0, busy / self.cpu_cores)

    def memory_kills(self) -> int | None:
        return None

    def io(self) -> IoReading:
        return self._io.read()


class MacProcess(NamedTuple):
    """A line of ps."""

    parent: int
    memory_gb: float
    cpu_percent: float
    command: str


def _ask(query: Query, *arguments: str) -> str:
    answer = query.ask(*arguments)
    if answer is None:
        raise OSError("%s %s" % (query.program, "hangs" if query.hung else "fails"))
    return answer


def parse_mac_memory(vm_stat: str, sysctl: str) -> MemoryReading:
    """Return the memory from vm_stat and from `sysctl -n hw.memsize vm.swapusage`. Raises ValueError."""
    pages = {}
    for line in vm_stat.splitlines():
        name, _, value = line.rpartition(":")
        if value.strip().rstrip(".").isdigit():
            pages[name] = int(value.strip().rstrip("."))
    page = next((int(word) for word in vm_stat.partition("page size of")[2].split()[:1] if word.isdigit()), 0)
    total, _, swap = sysctl.partition("\n")
    if not page or "Pages free" not in pages or not total.strip().isdigit():
        raise ValueError("the output of vm_stat or sysctl is not understood")
    free = pages["Pages free"] + pages.get("Pages speculative", 0)
    return MemoryReading(
        total_gb=int(total) / GB,
        used_gb=int(total) / GB - free * page / GB,
        available_gb=(free + pages.get("Pages inactive", 0)) * page / GB,
        swap_used_gb=_swap_used_gb(swap),
    )


def _swap_used_gb(text: str) -> float | None:
    """
    >>> _swap_used_gb("total = 2048.00M  used = 512.00M  free = 1536.00M  (encrypted)")
    0.5
    """
    words = text.partition("used =")[2].split()
    try:
        return float(words[0][:-1].replace(",", ".")) * _UNITS[words[0][-1]] / GB
    except (IndexError, KeyError, ValueError):
        return None


def parse_ps(text: str) -> dict[int, MacProcess]:
    """Return the processes of `ps -axo pid,ppid,rss,%cpu,command`. Lines that are not understood are left out."""
    found = {}
    for line in text.splitlines():
        fields = line.split(None, 4)
        try:
            pid, parent, kibibytes = (int(field) for field in fields[:3])
            percent = float(fields[3].replace(",", "."))
        except (ValueError, IndexError):
            continue
        found[pid] = MacProcess(parent, kibibytes * 1024 / GB, percent, fields[4] if len(fields) > 4 else "")
    return found


def readings_of_tree(
    processes: Mapping[int, MacProcess], root: int, gpu_memory_gb: Mapping[int, float]
) -> list[ProcessReading]:
    """Return the process `root` and its descendants with their roles."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    pids = [root] if root in processes else []
    for pid in pids:  # grows while it is walked
        pids += children.get(pid, [])
    tree = {pid: Seen(pid, processes[pid].parent, tuple(processes[pid].command.split())) for pid in pids}
    return [
        ProcessReading(pid, role, processes[pid].memory_gb, processes[pid].cpu_percent, gpu_memory_gb.get(pid))
        for pid, role in roles_of(tree, gpu_pids=gpu_memory_gb).items()
    ]
