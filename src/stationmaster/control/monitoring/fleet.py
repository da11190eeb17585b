"""What is known of all watched machines: the last listing merged with their logs. No input and no output."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from stationmaster.control.monitoring.groups import Groups
from stationmaster.control.monitoring.instance_metrics import InstanceMetrics, Snapshot, summarise
from stationmaster.control.monitoring.machine_log import MachineLog
from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting, Sightings
from stationmaster.model import SshAccess
from stationmaster.money import MicroDollars, cost
from stationmaster.parsers.patterns import UserPattern

_FORGOTTEN_SECONDS = 3600.0
"""A machine that the provider has not listed for this long leaves the list, unless it was asked for by id."""


@dataclass(slots=True, kw_only=True)
class _Known:
    metrics: InstanceMetrics
    log: MachineLog
    sighting: Sighting | None = None  # None while the provider does not list it
    missing_since: float | None = None


class Fleet:
    """The last known state of each machine. `warn` gets one line per problem, not repeated while it lasts."""

    def __init__(
        self,
        *,
        warn: Callable[[str], None],
        wanted: Iterable[str] = (),
        group: str | None = None,
        groups: Groups | None = None,
        only_running: bool = False,
        patterns: Sequence[UserPattern] = (),
        made_up: bool = False,
    ) -> None:
        """`wanted` names machines by id, all of them if empty; `only_running` leaves out what was never seen to run."""
        self._warn = warn
        self._wanted = tuple(dict.fromkeys(wanted))
        self._group = group
        self._groups = groups or Groups({})
        self._only_running = only_running
        self._patterns = patterns
        self._made_up = made_up
        self._known: dict[str, _Known] = {}
        self._unreadable: frozenset[str] = frozenset()
        self._is_stale = False
        self._problem: str | None = None
        self._seen: Sightings | None = None

    @property
    def is_empty(self) -> bool:
        return not any(known.metrics.seen_at for known in self._known.values())

    @property
    def is_last(self) -> bool:
        """Whether the listing has ended."""
        return self._seen is not None and self._seen.last

    def take_listing(self, seen: Sightings, *, now: float) -> bool:
        """The provider's answer. Returns whether it is another one than the last."""
        if seen is self._seen and not self._is_stale:
            return False
        self._seen, self._is_stale, self._problem = seen, False, None
        now = now if seen.at is None else seen.at
        for words in seen.unreadable:
            if words not in self._unreadable:
                self._warn(words)
        self._unreadable = frozenset(seen.unreadable)
        listed = [machine for machine in seen.machines if self._is_watched(machine)]
        for machine in listed:
            self._take(machine, now=now)
        everything, shown = {machine.id for machine in seen.machines}, {machine.id for machine in listed}
        for name in everything - shown:
            self._known.pop(name, None)  # it has left the group
        self._keep_missing(everything, now=now)
        return True

    def keep_old(self, problem: str) -> None:
        """The provider did not answer: everything stays as last known."""
        if problem != self._problem:
            self._warn(f"{problem}; showing the last known state")
        self._is_stale, self._problem = True, problem
        for name in self._always_shown():
            if name not in self._known:
                self._known[name] = self._unknown(name)
        for known in self._known.values():
            known.metrics = replace(known.metrics, stale=True)

    def readable(self) -> list[Sighting]:
        """The machines that may have a log now."""
        return [
            known.sighting
            for known in self._known.values()
            if known.sighting is not None and known.sighting.status == "running"
        ]

    def position(self, machine_id: str) -> LogPosition | None:
        known = self._known.get(machine_id)
        return None if known is None else known.log.position

    def take_log(self, machine_id: str, piece: LogPiece) -> bool:
        """Returns whether anything changed."""
        known = self._known.get(machine_id)
        if known is None:
            return False
        before = known.metrics
        known.metrics = known.log.add(piece, before)
        return known.metrics is not before

    def take_log_problem(self, machine_id: str, problem: str) -> bool:
        """Returns whether that is new."""
        known = self._known.get(machine_id)
        if known is None or known.metrics.problem == problem:
            return False
        self._warn(f"no log of instance {machine_id}: {problem}")
        known.metrics = replace(known.metrics, problem=problem)
        return True

    def clear_logs(self) -> None:
        for known in self._known.values():
            known.log.clear()
            known.metrics = replace(known.metrics, logs=())

    def snapshot(self, *, now: float) -> Snapshot:
        instances = tuple(known.metrics for known in self._known.values())
        return Snapshot(
            at=now, instances=instances, summary=summarise(instances), stale=self._is_stale, made_up=self._made_up
        )

    def ids(self) -> set[str]:
        return set(self._known)

    def _is_watched(self, machine: Sighting) -> bool:
        if self._wanted and machine.id not in self._wanted:
            return False
        if self._group is not None and self._group not in self._groups.of(machine.id, machine.label):
            return False
        return not self._only_running or machine.status == "running" or machine.id in self._known

    def _take(self, machine: Sighting, *, now: float) -> None:
        known = self._known.get(machine.id)
        if known is None:
            known = self._known[machine.id] = self._unknown(machine.id)
        groups = self._groups.of(machine.id, machine.label)
        known.metrics = _metrics(machine, known.metrics, groups, now=now)
        known.sighting, known.missing_since = machine, None

    def _keep_missing(self, listed: set[str], *, now: float) -> None:
        for name in [name for name in dict.fromkeys((*self._always_shown(), *self._known)) if name not in listed]:
            known = self._known.get(name)
            if known is None:
                known = self._known[name] = self._unknown(name)
            if known.missing_since is None:
                self._warn(f"instance {name} is not in the provider's list; showing what was last known")
                known.missing_since = now
            known.sighting = None
            known.metrics = replace(known.metrics, stale=True)
            if name not in self._wanted and now - known.missing_since > _FORGOTTEN_SECONDS:
                del self._known[name]

    def _always_shown(self) -> list[str]:
        """The machines that were asked for by id, even if the provider never listed them."""
        return [name for name in self._wanted if self._group in (None, *self._groups.of(name, ""))]

    def _unknown(self, name: str) -> _Known:
        return _Known(
            metrics=InstanceMetrics(id=name, status="unknown", stale=True, groups=self._groups.of(name, "")),
            log=MachineLog(self._patterns),
        )


def _metrics(machine: Sighting, before: InstanceMetrics, groups: tuple[str, ...], *, now: float) -> InstanceMetrics:
    """The provider's values, merged with what is known of the training."""
    runtime = None if machine.started_at is None else max(0.0, now - machine.started_at)
    return replace(
        before,
        gpu_type=machine.gpu_type,
        status=machine.status,
        label=machine.label,
        gpu_percent=machine.gpu_percent,
        gpu_celsius=machine.gpu_celsius,
        memory_percent=machine.memory_percent,
        cost_per_hour=machine.cost_per_hour,
        total_cost=_total_cost(machine, before, runtime, now=now),
        runtime_seconds=runtime,
        ssh=_ssh_command(machine.accesses[0]) if machine.accesses else None,
        groups=groups,
        seen_at=now,
        stale=False,
    )


def _total_cost(machine: Sighting, before: InstanceMetrics, runtime: float | None, *, now: float) -> MicroDollars:
    """Cost added from look to look at the current rate: a stopped machine's lower rate must not count backwards."""
    if before.seen_at:
        return MicroDollars(before.total_cost + cost(machine.cost_per_hour, max(0.0, now - before.seen_at)))
    return cost(machine.cost_per_hour, runtime or 0.0)


def _ssh_command(access: SshAccess) -> str:
    key = ["-i", access.key_path] if access.key_path else []
    port = ["-p", str(access.port)] if access.port else []
    return shlex.join(["ssh", *key, *port, f"{access.user}@{access.host}" if access.user else access.host])
