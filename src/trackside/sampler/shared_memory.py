"""Memory of processes without counting twice what forked workers share with their parent.

A forked worker shows all pages of its parent as its own. What the workers cost is what would be free without them: the
sum of the fair parts (Pss) of parent and workers, less the parent's own size. The kernel takes about 10 ms per GB to
add up a fair part, so that parts are read rarely. Between two readings what a process shares is taken as unchanged: by
how much its size grows, by that much its own memory does.
"""

from __future__ import annotations

import os
from typing import Callable, NamedTuple, Optional, Tuple

from trackside.sampler.cpu_share import CpuShare
from trackside.sampler.procfs import read_bytes
from trackside.sampler.sample import GB

_SHARE_OF_A_CORE = 0.0001


class Sized(NamedTuple):
    """A process with its memory in bytes, shared pages included. `worker_of` is a worker's parent."""

    pid: int
    start: int
    size: int
    worker_of: Optional[int] = None


class _Key(NamedTuple):
    """Whose part it is, beside how many workers: these start and end in each epoch of many trainings."""

    owner: Tuple[int, int]
    workers: int


class SharedMemory:
    """Divides memory between a training's processes and their workers."""

    def __init__(self, *, now: Callable[[], float], proc: str) -> None:
        self._now = now
        self._proc = proc
        self._cost = CpuShare(_SHARE_OF_A_CORE, now=now)
        self._shared: dict[_Key, int] = {}  # bytes of a process's size that are other processes' part
        self._read_at: dict[_Key, float] = {}
        self._usually_shared: dict[tuple[int, int], int] = {}  # by a worker, by its parent and the number of workers
        self._is_known = os.path.exists(proc + "/self/smaps_rollup")

    def divide(self, processes: list[Sized]) -> dict[int, float | None]:
        """Return each process's memory in GB; None for workers whose part cannot be read."""
        found: dict[int, float | None] = {process.pid: process.size / GB for process in processes}
        families: dict[int, list[Sized]] = {}
        for process in processes:
            if process.worker_of is not None:
                families.setdefault(process.worker_of, []).append(process)
        if not families or not self._is_known:
            return found
        parents = {process.pid: process for process in processes if process.pid in families}
        self._refresh(parents, families)
        for parent, workers in families.items():
            found.update(self._workers_gb(parents.get(parent), workers))
        return found

    def _workers_gb(self, parent: Sized | None, workers: list[Sized]) -> dict[int, float | None]:
        if not self._is_known:
            return {}
        count = len(workers)
        shared = {worker.pid: self._shared_by(worker, count) for worker in workers}
        parents = 0 if parent is None else self._shared.get(_key(parent, count))
        if parents is None or None in shared.values():
            return dict.fromkeys(shared)
        # The parent counts with its whole size: each worker gives up what it would pay for the parent's pages.
        refund = parents / count
        return {worker.pid: max(0.0, worker.size - (shared[worker.pid] or 0) - refund) / GB for worker in workers}

    def _shared_by(self, worker: Sized, count: int) -> int | None:
        own = self._shared.get(_key(worker, count))
        return self._usually_shared.get((worker.worker_of or 0, count)) if own is None else own

    def _refresh(self, parents: dict[int, Sized], families: dict[int, list[Sized]]) -> None:
        """Read the parts without which nothing can be divided, then the oldest one if that does not cost too much."""
        self._forget_the_dead(parents, families)
        everyone = []
        for pid, workers in families.items():
            count = len(workers)
            parent = parents.get(pid)
            if parent is not None:
                everyone.append((parent, count))
                if _key(parent, count) not in self._shared:
                    self._read(parent, count)
            if (pid, count) not in self._usually_shared:
                self._read(workers[0], count)
            everyone += [(worker, count) for worker in workers]
        if self._cost.is_free():
            self._read(*min(everyone, key=lambda one: self._read_at.get(_key(*one), 0.0)))

    def _read(self, process: Sized, count: int) -> None:
        with self._cost:
            try:
                fair = parse_fair_bytes(read_bytes("%s/%d/smaps_rollup" % (self._proc, process.pid)))
            except (FileNotFoundError, ProcessLookupError):
                fair = None
            except OSError:
                self._is_known = False  # another user's process
                return
        if fair is None or not process.size:
            return  # the process has ended
        key = _key(process, count)
        self._read_at[key] = self._now()
        self._shared[key] = max(0, process.size - fair)
        if process.worker_of is not None:
            self._usually_shared[process.worker_of, count] = self._shared[key]

    def _forget_the_dead(self, parents: dict[int, Sized], families: dict[int, list[Sized]]) -> None:
        alive = {process[:2] for process in parents.values()}
        alive |= {worker[:2] for workers in families.values() for worker in workers}
        self._shared = {key: size for key, size in self._shared.items() if key.owner in alive}
        self._read_at = {key: at for key, at in self._read_at.items() if key.owner in alive}
        self._usually_shared = {key: size for key, size in self._usually_shared.items() if key[0] in families}


def _key(process: Sized, workers: int) -> _Key:
    return _Key((process.pid, process.start), workers)


def parse_fair_bytes(rollup: bytes) -> int | None:
    """Return a process's fair part of the memory that it uses, without the page cache; None if there is none.

    >>> parse_fair_bytes(b"Rss: 10 kB\\nPss: 6 kB\\nPss_Anon: 2 kB\\nPss_File: 3 kB\\nPss_Shmem: 1 kB\\n")
    3072
    """
    found = {}
    for line in rollup.splitlines():
        name, _, rest = line.partition(b":")
        value = rest.split()
        if value and value[0].isdigit():
            found[name] = int(value[0]) * 1024
    if b"Pss_Anon" in found:
        return found[b"Pss_Anon"] + found.get(b"Pss_Shmem", 0)
    return found.get(b"Pss")  # kernels before 5.4 do not split it
