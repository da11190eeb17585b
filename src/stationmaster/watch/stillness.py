"""How long a machine has provably done nothing: what an early verdict on a stall needs. Pure.

Every sample either proves that the training rests, shows that it works, or proves nothing. A reading that is missing
proves nothing: unknown is not idle. A training that waits in a spinning loop keeps a core or a GPU busy, one that waits
for a disk or a remote file system does not sleep, and one that was stopped by a signal or a debugger will be continued:
none of them is still.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from zlib import crc32

from stationmaster.watch.policy import StallPolicy

ASLEEP, RUNNING, DISK, STOPPED = "asleep", "running", "disk", "stopped"
"""What a process is, by the threads that sleep least: `disk` waits for a file system."""

_MOST_GPU_PERCENT = 3.0
_MOST_GPU_POWER = 0.5  # part of its limit: an idle GPU whose clocks stay up takes up to a third
_MOST_CPU_PERCENT = 10.0  # of one core, all processes together: watchdogs and heartbeats stay below it
_MEMORY_CHANGE_GB, _MEMORY_CHANGE_PART = 0.02, 0.01
_TRAFFIC_MB, _TRAFFIC_MB_PER_SECOND = 0.5, 0.01  # reading the status and printing a heartbeat take less

# Parts of `min_window`, as everywhere in the watch.
_LONGEST_GAP = 1 / 10
_FRESH_FOR = 1 / 4
_WORKING_AFTER = 1 / 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineMoment:
    """What one sample shows of the machine and of the training's processes; None where it was not measured."""

    at: float  # by the machine's clock
    gpus: int | None = None  # how many the machine has
    gpu_percent: float | None = None  # of the busiest
    gpu_power_part: float | None = None  # of its limit, the highest
    gpu_memory_gb: float | None = None
    cpu_percent: float | None = None  # of one core, all processes of the training together
    memory_gb: float | None = None
    io_mb_per_second: float | None = None  # read and written by the training
    network_mb_per_second: float | None = None  # of the machine
    processes: tuple[int, ...] = ()
    states: tuple[str | None, ...] = ()  # of these processes

    @classmethod
    def from_json(cls, at: float, document: Mapping[str, Any]) -> MachineMoment:
        """The moment in a recorded trace. Raises TypeError or ValueError for what is none."""
        known = {item.name for item in fields(cls)}
        values = {name: value for name, value in document.items() if name in known}
        for name in ("processes", "states"):
            values[name] = tuple(values.get(name) or ())
        numbers = (value for name, value in values.items() if name not in ("processes", "states"))
        if not all(value is None or isinstance(value, int | float) for value in numbers):
            raise ValueError("a sample holds numbers")
        return cls(**{"at": at, **values})


@dataclass(slots=True)
class Stillness:
    """The current stretch in which every sample proved that nothing is done."""

    _since: float | None = None
    _until: float | None = None  # the last sample that proved it
    _quiet: float | None = None  # the last sample that proved it but for the threads' states
    _seen: float | None = None  # the last sample
    _works_since: float | None = None  # the training does something, and no sample has proved the opposite since then
    _processes: int = 0
    _identity: int = 0  # of these processes
    _memory_gb: float = 0.0
    _gpu_memory_gb: float | None = None
    _io_mb: float = 0.0
    _network_mb: float = 0.0
    _gpu_percent: float | None = None  # the highest of the stretch, as is the CPU's
    _cpu_percent: float = 0.0
    _longest: float = 0.0  # since the last new step
    _usual: float = 0.0  # the longest stretch that was followed by new steps
    _is_refuted: bool = False  # a verdict was withdrawn: no further one before the next step

    def observe(self, moment: MachineMoment, policy: StallPolicy) -> None:
        """Take in the next sample."""
        if self._seen is not None and moment.at < self._seen:
            self._end()  # the clock was set back
        elapsed = 0.0 if self._seen is None else min(max(0.0, moment.at - self._seen), _LONGEST_GAP * policy.min_window)
        self._seen = moment.at
        rests, sleeps = self._training_rests(moment, elapsed), self._processes_sleep(moment)
        network = self._network_rests(moment, elapsed)
        if self._has_gap(moment.at, policy):
            self._end()
        if (rests is False or sleeps is False) and self._works_since is None:
            self._works_since = moment.at
        if False in (rests, sleeps, network):
            self._end()
        elif rests and network:
            self._quiet = moment.at
            if sleeps:
                self._extend(moment)

    def lasted(self, at: float, policy: StallPolicy) -> float:
        """For how long nothing was done, by the samples; 0 if the last one is old, or if a verdict was withdrawn."""
        if self._since is None or self._until is None or self._is_refuted:
            return 0.0
        is_fresh = abs(at - self._until) <= _FRESH_FOR * policy.min_window
        return self._until - self._since if is_fresh else 0.0

    def needed(self, window: float, policy: StallPolicy) -> float:
        """How long it has to last: the window, or longer in a run that has rested before and went on."""
        return max(window, min(policy.learned_cap, policy.learned_factor * self._usual))

    def works_again(self, policy: StallPolicy) -> bool:
        """Whether the training has done something for a while, by the samples."""
        if self._works_since is None or self._seen is None:
            return False
        return self._seen - self._works_since >= _WORKING_AFTER * policy.min_window

    def refute(self) -> None:
        """Allow no early verdict until the next step: the last one was wrong."""
        self._is_refuted = True

    def note_progress(self, *, learn: bool) -> None:
        """Begin anew after a new step, and remember how long nothing was done if the run was healthy."""
        if learn:
            self._usual = max(self._usual, self._longest)
        self._longest = 0.0
        self._is_refuted = False

    def describe(self) -> str:
        """The evidence in words."""
        parts = [] if self._gpu_percent is None else [f"GPU {self._gpu_percent:.0f} %"]
        parts += [f"CPU {self._cpu_percent:.0f} %", "nothing read or written"]
        asleep = "the process" if self._processes == 1 else f"all {self._processes} processes"
        return ", ".join([*parts, f"{asleep} asleep"])

    def _has_gap(self, at: float, policy: StallPolicy) -> bool:
        """Whether too much time has passed without proof. Where there are many threads, they are rarely looked at."""
        if self._until is None or self._quiet is None:
            return False
        return at - self._quiet > _LONGEST_GAP * policy.min_window or at - self._until > _FRESH_FOR * policy.min_window

    def _training_rests(self, moment: MachineMoment, elapsed: float) -> bool | None:
        """Whether the sample shows no work of the training; None if it neither proves nor disproves that."""
        found = [
            self._gpus_rest(moment),
            _is_at_most(moment.cpu_percent, _MOST_CPU_PERCENT),
            self._io_rests(moment, elapsed),
            self._memory_stays(moment),
        ]
        if False in found:
            return False
        return None if None in found else True

    def _gpus_rest(self, moment: MachineMoment) -> bool | None:
        if moment.gpus == 0:
            return True
        draws_power = moment.gpu_power_part is not None and moment.gpu_power_part > _MOST_GPU_POWER
        return False if draws_power else _is_at_most(moment.gpu_percent, _MOST_GPU_PERCENT)

    def _io_rests(self, moment: MachineMoment, elapsed: float) -> bool | None:
        if moment.io_mb_per_second is None:
            return None
        self._io_mb += moment.io_mb_per_second * elapsed
        return self._is_little(self._io_mb, moment)

    def _network_rests(self, moment: MachineMoment, elapsed: float) -> bool | None:
        """Whether the machine's network rests. It shows no work of the training: others may use it."""
        if moment.network_mb_per_second is None:
            return None
        self._network_mb += moment.network_mb_per_second * elapsed
        return self._is_little(self._network_mb, moment)

    def _is_little(self, megabytes: float, moment: MachineMoment) -> bool:
        """Bursts are added up over the stretch: what reads the status causes one every minute."""
        lasted = moment.at - self._since if self._since is not None else 0.0
        return megabytes <= _TRAFFIC_MB + _TRAFFIC_MB_PER_SECOND * lasted

    def _memory_stays(self, moment: MachineMoment) -> bool | None:
        if moment.memory_gb is None:
            return None
        if self._since is None:
            return True
        pairs = [(moment.memory_gb, self._memory_gb)]
        if moment.gpu_memory_gb is not None and self._gpu_memory_gb is not None:
            pairs.append((moment.gpu_memory_gb, self._gpu_memory_gb))
        return all(_is_near(now, before) for now, before in pairs)

    def _processes_sleep(self, moment: MachineMoment) -> bool | None:
        if not moment.processes or len(moment.states) != len(moment.processes):
            return None
        if DISK in moment.states or STOPPED in moment.states:
            return False
        if self._since is not None and _identity(moment) != self._identity:
            return False  # one has started or ended
        # A thread that happens to run in this instant proves little: how much it ran is in the CPU's share.
        return True if set(moment.states) == {ASLEEP} else None

    def _extend(self, moment: MachineMoment) -> None:
        if self._since is None:
            self._since = moment.at
            self._processes, self._identity = len(moment.processes), _identity(moment)
            self._memory_gb, self._gpu_memory_gb = moment.memory_gb or 0.0, moment.gpu_memory_gb
            self._io_mb = self._network_mb = self._cpu_percent = 0.0
            self._gpu_percent = None
        self._until, self._works_since = moment.at, None
        if moment.gpu_percent is not None:
            self._gpu_percent = max(self._gpu_percent or 0.0, moment.gpu_percent)
        self._cpu_percent = max(self._cpu_percent, moment.cpu_percent or 0.0)
        self._longest = max(self._longest, self._until - self._since)

    def _end(self) -> None:
        self._since = self._until = self._quiet = None
        self._io_mb = self._network_mb = 0.0


def _is_at_most(value: float | None, limit: float) -> bool | None:
    return None if value is None else value <= limit


def _is_near(value: float, other: float) -> bool:
    return abs(value - other) <= _MEMORY_CHANGE_GB + _MEMORY_CHANGE_PART * other


def _identity(moment: MachineMoment) -> int:
    return crc32(repr(sorted(moment.processes)).encode())
