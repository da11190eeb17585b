"""Limits of the control groups that a process is in, versions 1 and 2: in a container they are what counts."""

from __future__ import annotations

import os
from typing import FrozenSet, Iterator, NamedTuple, Tuple

from trackside.sampler.procfs import read_or_none
from trackside.sampler.sample import GB

# Version 1 writes "no limit" as the largest number of pages.
_NO_LIMIT_BYTES = 1 << 60


class CpuQuota(NamedTuple):
    """How many cores a group may use, and the folder that counts what it has used."""

    cores: float
    folder: str

    def used_seconds(self) -> float | None:
        """Return the CPU time of the group so far."""
        for line in _read(self.folder, "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "usage_usec":
                return int(value) / 1e6
        nanoseconds = _read(self.folder, "cpuacct.usage")
        return int(nanoseconds) / 1e9 if nanoseconds.isdigit() else None


class ControlGroups(NamedTuple):
    """The folders of a process's groups, innermost first, those above included. Empty where there are none."""

    memory: Tuple[str, ...] = ()
    cpu: Tuple[str, ...] = ()
    cpu_usage: Tuple[str, ...] = ()  # of the same groups; version 1 counts in a hierarchy of its own

    def memory_limit_gb(self) -> float | None:
        """Return the lowest limit of all groups; None without one."""
        limits = [limit for limit in map(_memory_limit, self.memory) if limit is not None]
        return min(limits) / GB if limits else None

    def memory_kills(self) -> int | None:
        """Return how many processes of the innermost group the kernel has killed for lack of memory."""
        for folder in self.memory[:1]:
            return _counter(_read(folder, "memory.events") or _read(folder, "memory.oom_control"), "oom_kill")
        return None

    def swap_used_gb(self) -> float | None:
        """Return the swap that the group with the lowest memory limit uses; None without a limit."""
        limited = [(limit, folder) for folder in self.memory for limit in (_memory_limit(folder),) if limit is not None]
        if not limited:
            return None
        folder = min(limited)[1]
        swapped = _read(folder, "memory.swap.current")
        used = int(swapped) if swapped.isdigit() else _counter(_read(folder, "memory.stat"), "swap")
        return None if used is None else used / GB

    def cpu_quota(self) -> CpuQuota | None:
        """Return the lowest quota of all groups; None without one."""
        quotas = [
            CpuQuota(cores, usage)
            for number, usage in enumerate(self.cpu_usage[: len(self.cpu)])
            for cores in (_quota_cores(self.cpu[number]),)
            if cores is not None
        ]
        return min(quotas, default=None)


def control_groups(pid: int | str = "self", *, proc: str = "/proc") -> ControlGroups:
    """Return the groups of a process, as far as this process can see them."""
    listed = (read_or_none("%s/%s/cgroup" % (proc, pid)) or b"").decode("utf-8", "replace")
    mounts = list(_mounts((read_or_none(proc + "/self/mountinfo") or b"").decode("utf-8", "replace")))
    found: dict[str, tuple[str, ...]] = {}
    for line in listed.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            folders = tuple(_folders(mounts, controller, path))
            if folders:
                found[controller] = folders
    unified = found.get("", ())
    return ControlGroups(
        memory=found.get("memory", unified), cpu=found.get("cpu", unified), cpu_usage=found.get("cpuacct", unified)
    )


class _Mount(NamedTuple):
    root: str
    folder: str
    controllers: FrozenSet[str]


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or not kind[0].startswith("cgroup"):
            continue
        controllers = frozenset([""]) if kind[0] == "cgroup2" else frozenset(kind[2].split(","))
        yield _Mount(fields[3], fields[4], controllers)


def _folders(mounts: list[_Mount], controller: str, path: str) -> Iterator[str]:
    """Return the group's folder and those above it, up to where the hierarchy is mounted."""
    mount = next((mount for mount in mounts if controller in mount.controllers), None)
    if mount is None:
        return
    # A container often sees its own group as the root of the mount, while the path is the host's.
    root = mount.root.rstrip("/")
    inside = path[len(root) :] if path == root or path.startswith(root + "/") else ""
    folder = os.path.normpath(mount.folder + "/" + inside)
    while True:
        if os.path.isdir(folder):
            yield folder
        if folder == os.path.normpath(mount.folder) or not folder.startswith(mount.folder):
            return
        folder = os.path.dirname(folder)


def _memory_limit(folder: str) -> int | None:
    text = _read(folder, "memory.max") or _read(folder, "memory.limit_in_bytes")
    return int(text) if text.isdigit() and int(text) < _NO_LIMIT_BYTES else None


def _counter(text: str, wanted: str) -> int | None:
    """Return the value in the line that begins with a name."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == wanted and value.isdigit():
            return int(value)
    return None


def _quota_cores(folder: str) -> float | None:
    quota, _, period = _read(folder, "cpu.max").partition(" ")
    if not quota:
        quota, period = _read(folder, "cpu.cfs_quota_us"), _read(folder, "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _read(folder: str, name: str) -> str:
    return (read_or_none("%s/%s" % (folder, name)) or b"").decode("ascii", "replace").strip()
