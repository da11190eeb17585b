"""The processes of a training on Linux: their roles, memory and CPU."""

from __future__ import annotations

import os
from typing import Callable, Iterator, Mapping, NamedTuple, Optional

from trackside.sampler.cpu_share import CpuShare
from trackside.sampler.procfs import read_bytes, read_or_none
from trackside.sampler.roles import WORKER, Seen, roles_of
from trackside.sampler.sample import ProcessReading
from trackside.sampler.shared_memory import SharedMemory, Sized
from trackside.sampler.thread_states import state_of

_SCAN_SHARE_OF_A_CORE = 0.0003
_STATES_SHARE_OF_A_CORE = 0.0005
_QUIET_PERCENT = 20.0  # of one core, all processes together
_MB = 1e6
_SIZES = (b"RssAnon:", b"RssShmem:")


class _Stat(NamedTuple):
    parent: int
    is_zombie: bool
    cpu_ticks: int
    threads: int
    start: int
    name: str


class _Work(NamedTuple):
    """What a process has done since it started."""

    cpu_ticks: int
    io_bytes: Optional[int]


class ProcessTree:
    """The process `pid` and all its descendants. One that ends between two readings is left out."""

    def __init__(self, pid: int, *, now: Callable[[], float], proc: str = "/proc") -> None:
        self._pid = pid
        self._now = now
        self._proc = proc
        self._start = self._stat_or_none(pid)
        self._scan_cost = CpuShare(_SCAN_SHARE_OF_A_CORE, now=now)
        self._memory = SharedMemory(now=now, proc=proc)
        self._roles: dict[int, tuple[int, str]] = {}  # by pid: start time and role
        self._threads = 0
        self._lists_children = os.path.exists("%s/self/task/%d/children" % (proc, os.getpid()))
        self._states_cost = CpuShare(_STATES_SHARE_OF_A_CORE, now=now)
        self._work: dict[tuple[int, int], _Work] = {}
        self._read_at: float | None = None
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")

    def read(self, *, gpu_memory_gb: Mapping[int, float]) -> list[ProcessReading]:
        """Return all processes that are alive; none once `pid` has ended."""
        if self._scan_cost.is_free() or not self._roles:
            with self._scan_cost:
                self._roles = self._scan(gpu_memory_gb)
        stats = self._stats()
        memory = self._memory.divide(
            [
                Sized(pid, stat.start, self._size(pid), stat.parent if self._roles[pid][1] == WORKER else None)
                for pid, stat in stats.items()
            ]
        )
        percents, io = self._rates(stats)
        states = self._states(percents) if len(percents) == len(stats) else {}
        return [
            ProcessReading(
                pid=pid,
                role=self._roles[pid][1],
                memory_gb=memory[pid],
                cpu_percent=percents.get(pid),
                gpu_memory_gb=gpu_memory_gb.get(pid),
                io_mb_per_second=io.get(pid),
                state=states.get(pid),
            )
            for pid in stats
        ]

    def _stats(self) -> dict[int, _Stat]:
        found = {}
        for pid, (start, _) in self._roles.items():
            stat = self._stat_or_none(pid)
            if stat is not None and stat.start == start and not stat.is_zombie:
                found[pid] = stat
        return found

    def _rates(self, stats: Mapping[int, _Stat]) -> tuple[dict[int, float], dict[int, float]]:
        """Return each process's CPU in percent of a core, and the megabytes that it moved per second."""
        now, before = self._now(), self._work
        self._work = {(pid, stat.start): _Work(stat.cpu_ticks, self._io_bytes(pid)) for pid, stat in stats.items()}
        elapsed = now - self._read_at if self._read_at is not None else 0.0
        self._read_at = now
        percents: dict[int, float] = {}
        moved: dict[int, float] = {}
        if elapsed <= 0.0:
            return percents, moved
        for (pid, start), work in self._work.items():
            last = before.get((pid, start))
            if last is None:
                continue
            percents[pid] = 100.0 * (work.cpu_ticks - last.cpu_ticks) / self._ticks_per_second / elapsed
            if work.io_bytes is not None and last.io_bytes is not None:
                moved[pid] = max(0, work.io_bytes - last.io_bytes) / elapsed / _MB
        return percents, moved

    def _states(self, percents: Mapping[int, float]) -> dict[int, str | None]:
        """Return what each process waits for, if it waits: there may be thousands of threads to look at."""
        if sum(percents.values()) > _QUIET_PERCENT or not self._states_cost.is_free():
            return {}
        with self._states_cost:
            return {pid: state_of(pid, proc=self._proc) for pid in percents}

    def _io_bytes(self, pid: int) -> int | None:
        content = read_or_none("%s/%d/io" % (self._proc, pid))
        return parse_io(content) if content else None

    def _scan(self, gpu_pids: Mapping[int, float]) -> dict[int, tuple[int, str]]:
        """Find all descendants and their roles."""
        root = self._stat_or_none(self._pid)
        if root is None or self._start is None or root.start != self._start.start or root.is_zombie:
            return {}
        find_children = self._children_finder()
        tree: dict[int, Seen] = {}
        starts: dict[int, int] = {}
        self._threads = 0
        waiting = [(self._pid, root)]
        for pid, stat in waiting:  # grows while it is walked: parents come before their children
            tree[pid] = self._look_at(pid, stat)
            starts[pid] = stat.start
            self._threads += stat.threads
            for child in find_children(pid):
                seen = self._stat_or_none(child)
                if seen is not None and not seen.is_zombie and seen.parent == pid and child not in tree:
                    waiting.append((child, seen))
        roles = roles_of(tree, gpu_pids=gpu_pids)
        return {pid: (starts[pid], role) for pid, role in roles.items()}

    def _children_finder(self) -> Callable[[int], Iterator[int] | list[int]]:
        """Choose the cheaper way: the lists of all threads of the tree, or one pass over all processes."""
        pids = [int(name) for name in os.listdir(self._proc) if name.isdigit()]
        if self._lists_children and self._threads <= len(pids):
            return self._listed_children
        children: dict[int, list[int]] = {}
        for pid in pids:
            stat = self._stat_or_none(pid)
            if stat is not None:
                children.setdefault(stat.parent, []).append(pid)
        return lambda pid: children.get(pid, [])

    def _listed_children(self, pid: int) -> Iterator[int]:
        folder = "%s/%d/task" % (self._proc, pid)
        try:
            threads = os.listdir(folder)
        except OSError:
            return
        for thread in threads:
            for child in (read_or_none("%s/%s/children" % (folder, thread)) or b"").split():
                yield int(child)

    def _look_at(self, pid: int, stat: _Stat) -> Seen:
        folder = "%s/%d" % (self._proc, pid)
        command = (read_or_none(folder + "/cmdline") or b"").decode("utf-8", "replace")
        try:
            program = os.readlink(folder + "/exe")
        except OSError:
            program = ""
        return Seen(
            pid=pid,
            parent=stat.parent,
            command=tuple(command.rstrip("\0").split("\0")),
            program=program,
            image=read_or_none(folder + "/auxv") or b"",
            name=stat.name,
        )

    def _stat_or_none(self, pid: int) -> _Stat | None:
        line = read_or_none("%s/%d/stat" % (self._proc, pid))
        return parse_stat(line) if line else None

    def _size(self, pid: int) -> int:
        try:
            return parse_size(read_bytes("%s/%d/status" % (self._proc, pid)))
        except OSError:
            return 0


def parse_stat(line: bytes) -> _Stat:
    """
    >>> line = b"7 (a) b) S 1 " + b" ".join(b"%d" % number for number in range(5, 53))
    >>> parse_stat(line)[:2], parse_stat(line).name
    ((1, False), 'a) b')
    """
    opening, closing = line.index(b"("), line.rindex(b")")  # the name may hold parentheses
    fields = line[closing + 2 :].split()
    return _Stat(
        parent=int(fields[1]),
        is_zombie=fields[0] in (b"Z", b"X"),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        start=int(fields[19]),
        name=line[opening + 1 : closing].decode("utf-8", "replace"),
    )


def parse_size(status: bytes) -> int:
    """Return a process's resident memory in bytes without the page cache, as far as the kernel separates them.

    >>> parse_size(b"VmRSS: 9 kB\\nRssAnon: 4 kB\\nRssFile: 4 kB\\nRssShmem: 1 kB\\n")
    5120
    >>> parse_size(b"VmRSS: 9 kB\\n")
    9216
    """
    names = _SIZES if b"RssAnon:" in status else (b"VmRSS:",)
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith(names)) * 1024


def parse_io(content: bytes) -> int | None:
    """Return the bytes that a process has read and written: through calls, or straight from a disk by mapped files.

    >>> parse_io(b"rchar: 7\\nwchar: 2\\nsyscr: 1\\nsyscw: 1\\nread_bytes: 4096\\nwrite_bytes: 0\\n")
    4096
    """
    found = {}
    for line in content.splitlines():
        name, _, value = line.partition(b": ")
        if value.strip().isdigit():
            found[name] = int(value)
    if not {b"rchar", b"wchar"} <= set(found):
        return None
    calls = found[b"rchar"] + found[b"wchar"]
    return max(calls, found.get(b"read_bytes", 0) + found.get(b"write_bytes", 0))


def sums_by_role(processes: list[ProcessReading]) -> tuple[float | None, float | None, int | None]:
    """Return the memory of the training without its workers, the workers' memory, and how many there are."""
    if not processes:
        return None, None, None
    workers = [process for process in processes if process.role == WORKER]
    return (
        _sum([process.memory_gb for process in processes if process.role != WORKER]),
        _sum([process.memory_gb for process in workers]),
        len(workers),
    )


def _sum(values: list[float | None]) -> float | None:
    """Return the sum; None if a part of it is unknown."""
    known = [value for value in values if value is not None]
    return sum(known, 0.0) if len(known) == len(values) else None
