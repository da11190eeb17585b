"""Watches any rented machines, ours or not: one look at all of them at a time; a failure keeps the last state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from stationmaster.control.monitoring.instance_metrics import InstanceMetrics, Snapshot, summarise
from stationmaster.control.monitoring.log_tail import LogTail
from stationmaster.errors import AccessRefused, ProviderError, StationmasterError
from stationmaster.model import SshAccess
from stationmaster.money import ZERO, MicroDollars, cost
from stationmaster.parsers.base import Scope, Summary
from stationmaster.parsers.patterns import UserPattern

Value = TypeVar("Value")
_API_SECONDS = 10.0
_TAILS_AT_ONCE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One machine as its provider lists it."""

    id: str
    status: str
    label: str = ""
    gpu_type: str = "unknown"
    gpu_percent: float | None = None
    gpu_celsius: float | None = None
    memory_percent: float | None = None
    cost_per_hour: MicroDollars = ZERO
    started_at: float | None = None
    accesses: tuple[SshAccess, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    machines: tuple[Sighting, ...]
    unreadable: tuple[str, ...] = ()  # entries that could not be parsed, described


class Source(Protocol):
    """Lists machines and reads their logs."""

    async def machines(self) -> Sightings:
        """List all machines in one call. Raises a ProviderError when there is no reliable answer."""

    async def log_tail(self, machine: Sighting) -> bytes:
        """Read the last lines of its training log. Raises a StationmasterError with the reason if it cannot."""


class Monitor:
    """Keeps the last known state of each machine. `warn` gets one line per problem."""

    def __init__(
        self,
        source: Source,
        *,
        wanted: Iterable[str] = (),
        only_running: bool = False,
        warn: Callable[[str], None],
        api_seconds: float = _API_SECONDS,
        patterns: Sequence[UserPattern] = (),
    ) -> None:
        """`wanted` names machines by id, all of them if empty; `only_running` leaves out what was never seen to run."""
        self._source = source
        self._wanted = tuple(dict.fromkeys(wanted))
        self._only_running = only_running
        self._warn = warn
        self._api_seconds = api_seconds
        self._patterns = patterns
        self._known: dict[str, InstanceMetrics] = {}
        self._logs: dict[str, LogTail] = {}

    async def cycle(self, *, now: float) -> Snapshot:
        """One list call, then all logs at the same time. Never raises because something does not answer.

        AccessRefused only as long as nothing is known: a key that never worked is for the person to mend.
        """
        seen = await self._look()
        machines = [machine for machine in (seen.machines if seen else ()) if self._is_watched(machine)]
        room = asyncio.Semaphore(_TAILS_AT_ONCE)
        self._logs = {
            machine.id: self._logs.get(machine.id) or LogTail(patterns=self._patterns) for machine in machines
        }
        fresh = await asyncio.gather(*(self._measure(machine, room, now=now) for machine in machines))
        self._known.update((metrics.id, metrics) for metrics in fresh)
        self._keep_missing({metrics.id for metrics in fresh}, provider_answered=seen is not None)
        instances = tuple(self._known.values())
        return Snapshot(at=now, instances=instances, summary=summarise(instances), stale=seen is None)

    async def _look(self) -> Sightings | None:
        try:
            async with asyncio.timeout(self._api_seconds):
                seen = await self._source.machines()
        except TimeoutError:
            self._warn(f"the provider did not answer within {self._api_seconds:g} s; showing the last known state")
            return None
        except ProviderError as problem:
            if isinstance(problem, AccessRefused) and not self._known:
                raise
            self._warn(f"{problem}; showing the last known state")
            return None
        for words in seen.unreadable:
            self._warn(words)
        return seen

    def _is_watched(self, machine: Sighting) -> bool:
        if self._wanted:
            return machine.id in self._wanted
        return not self._only_running or machine.status == "running" or machine.id in self._known

    async def _measure(self, machine: Sighting, room: asyncio.Semaphore, *, now: float) -> InstanceMetrics:
        metrics = _metrics(machine, self._known.get(machine.id), now=now)
        if machine.status != "running":
            return metrics
        try:
            async with room:
                tail = await self._source.log_tail(machine)
        except StationmasterError as problem:
            self._warn(f"no log of instance {machine.id}: {problem}")
            return replace(metrics, problem=str(problem))
        return with_log(metrics, tail, log=self._logs[machine.id])

    def _keep_missing(self, fresh: set[str], *, provider_answered: bool) -> None:
        for missing in [name for name in (*self._wanted, *self._known) if name not in fresh]:
            known = self._known.get(missing)
            if provider_answered and not (known and known.stale):
                self._warn(f"instance {missing} is not in the provider's list; showing what was last known")
            self._known[missing] = (
                replace(known, stale=True) if known else InstanceMetrics(id=missing, status="unknown", stale=True)
            )


def with_log(metrics: InstanceMetrics, tail: bytes, *, log: LogTail) -> InstanceMetrics:
    """The machine with the values at the end of its log; values that are not there stay as they were."""
    read = log.read(tail)
    return replace(
        metrics,
        logs=log.lines,
        epoch=_either(read.epoch, metrics.epoch),
        total_epochs=_either(read.total_epochs, metrics.total_epochs),
        step=_either(read.step, metrics.step),
        total_steps=_either(read.total_steps, metrics.total_steps),
        counts_epoch=read.step_scope is Scope.EPOCH or (metrics.counts_epoch and _same_total(read, metrics)),
        loss=_either(read.loss, metrics.loss),
        steps_per_second=read.steps_per_second,
        told_eta_seconds=read.eta_seconds,
        problem=None,
    )


def _metrics(machine: Sighting, before: InstanceMetrics | None, *, now: float) -> InstanceMetrics:
    """The provider's values, merged with what is known of the training."""
    runtime = None if machine.started_at is None else max(0.0, now - machine.started_at)
    return replace(
        before or InstanceMetrics(id=machine.id),
        gpu_type=machine.gpu_type,
        status=machine.status,
        label=machine.label,
        gpu_percent=machine.gpu_percent,
        gpu_celsius=machine.gpu_celsius,
        memory_percent=machine.memory_percent,
        cost_per_hour=machine.cost_per_hour,
        total_cost=_total_cost(machine, before, runtime, now=now),
        runtime_seconds=runtime,
        seen_at=now,
        stale=False,
    )


def _total_cost(
    machine: Sighting, before: InstanceMetrics | None, runtime: float | None, *, now: float
) -> MicroDollars:
    """Cost added from look to look at the current rate: a stopped machine's lower rate must not count backwards."""
    if before is not None and before.seen_at:
        return MicroDollars(before.total_cost + cost(machine.cost_per_hour, max(0.0, now - before.seen_at)))
    return cost(machine.cost_per_hour, runtime or 0.0)


def _same_total(read: Summary, metrics: InstanceMetrics) -> bool:
    """Whether the counter is the same, although the line with the epoch may have left the end of the log."""
    return read.total_steps in (None, metrics.total_steps)


def _either(new: Value | None, old: Value | None) -> Value | None:
    return new if new is not None else old
