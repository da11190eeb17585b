"""What a person wants to hear of a machine: an epoch's end, its exit, health that turned and stayed so. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stationmaster.control.monitoring.instance_metrics import InstanceHealth, InstanceMetrics, Snapshot

_HELD_LISTINGS = 2
"""A health counts once this many answers of the provider in a row have shown it."""
_BAD = (InstanceHealth.WARNING, InstanceHealth.ERROR)


class NoticeKind(StrEnum):
    EPOCH = "epoch"
    EXITED = "exited"
    HEALTH = "health"  # turned yellow or red
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something about one machine that a person wants to hear of, as a sentence."""

    at: float
    instance: str
    kind: NoticeKind
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is held to be true of a machine, and what is about to be."""

    health: InstanceHealth
    coming: InstanceHealth  # the same as `health` while nothing changes
    held: int  # answers in a row that showed `coming`
    seen_at: float
    has_exited: bool
    is_bad: bool  # was yellow or red, and not healthy since
    epoch: float | None
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the notices so far have said, by machine."""

    machines: Mapping[str, _Told] = field(default_factory=dict)


def new_notices(told: Told, snapshot: Snapshot, *, unfinished: Collection[str] = ()) -> tuple[Told, tuple[Notice, ...]]:
    """The notices that a look adds. The first look at a machine adds none: there is nothing that it changed from.

    `unfinished`: machines whose log was not read yet, so that this is not the first look at them.
    """
    machines: dict[str, _Told] = {}
    notices: list[Notice] = []
    for instance in snapshot.instances:
        before = told.machines.get(instance.id)
        if not instance.seen_at or (before is None and (instance.stale or instance.id in unfinished)):
            continue
        if before is None:
            machines[instance.id] = _first(instance)
            continue
        after = before if instance.stale else _after(before, instance)
        machines[instance.id] = after
        notices += [
            Notice(at=snapshot.at, instance=instance.id, kind=kind, sentence=sentence)
            for kind, sentence in _changes(before, after, instance)
        ]
    return Told(machines=machines), tuple(notices)


def health_reason(instance: InstanceMetrics) -> str:
    """Why the machine is not healthy, in words.

    >>> health_reason(InstanceMetrics(id="1", gpu_percent=3.0))
    'its GPU is idle (3%)'
    """
    if instance.health_status() is InstanceHealth.ERROR:
        return f"it is {instance.status}"
    if instance.loss is not None and not instance.loss < 10.0:
        return f"its loss diverges ({instance.loss:g})"
    if instance.gpu_percent is None:
        return "the load of its GPU is unknown"
    return f"its GPU is {'idle' if instance.gpu_percent <= 10.0 else 'over-used'} ({instance.gpu_percent:.0f}%)"


def _first(instance: InstanceMetrics) -> _Told:
    health = instance.health_status()
    return _Told(
        health=health,
        coming=health,
        held=1,
        seen_at=instance.seen_at,
        has_exited=health is InstanceHealth.ERROR,
        is_bad=health in _BAD,
        epoch=instance.epoch,
        is_done=_is_done(instance),
    )


def _after(before: _Told, instance: InstanceMetrics) -> _Told:
    health, epoch, is_done = instance.health_status(), _later(before.epoch, instance.epoch), _is_done(instance)
    if health is before.health is before.coming and before.held >= _HELD_LISTINGS and not before.has_exited:
        # So it is at nearly every look: nothing but the epoch can have changed.
        return (
            before
            if (epoch, is_done) == (before.epoch, before.is_done)
            else replace(before, epoch=epoch, is_done=is_done)
        )
    told = replace(before, seen_at=instance.seen_at, epoch=epoch, is_done=is_done)
    if health is InstanceHealth.ERROR:  # the provider's word needs no second look
        return replace(told, health=health, coming=health, held=_HELD_LISTINGS, has_exited=True, is_bad=True)
    if health is not before.coming:
        return replace(told, coming=health, held=1)
    held = before.held + (instance.seen_at != before.seen_at)
    if held < _HELD_LISTINGS:
        return replace(told, held=held)
    is_bad = health in _BAD or (before.is_bad and health is not InstanceHealth.HEALTHY)
    return replace(told, health=health, held=_HELD_LISTINGS, has_exited=False, is_bad=is_bad)


def _changes(before: _Told, after: _Told, instance: InstanceMetrics) -> Iterator[tuple[NoticeKind, str]]:
    name = f"Instance {instance.id}" + (f" ({instance.label})" if instance.label else "")
    if (epoch := _completed_epoch(before, after, instance)) is not None:
        of_all = f" of {instance.total_epochs}" if instance.total_epochs else ""
        yield NoticeKind.EPOCH, f"{name} completed epoch {epoch}{of_all}."
    if after.has_exited and not before.has_exited:
        yield NoticeKind.EXITED, f"{name} has exited (status {instance.status})."
    elif after.health is not before.health and after.health in _BAD:
        colour = "yellow" if after.health is InstanceHealth.WARNING else "red"
        yield NoticeKind.HEALTH, f"{name} turned {colour}: {health_reason(instance)}."
    elif before.is_bad and not after.is_bad:
        yield NoticeKind.RECOVERED, f"{name} is healthy again."


def _completed_epoch(before: _Told, after: _Told, instance: InstanceMetrics) -> int | None:
    """Trainers whose counter of steps restarts name the epoch that begins, the others count those that are done."""
    if after.is_done and not before.is_done and instance.total_epochs:
        return instance.total_epochs
    if before.epoch is None or after.epoch is None or math.floor(after.epoch) <= math.floor(before.epoch):
        return None
    return max(1, math.floor(after.epoch) - instance.counts_epoch)


def _is_done(instance: InstanceMetrics) -> bool:
    return instance.progress_percentage() == 100.0


def _later(before: float | None, after: float | None) -> float | None:
    return before if after is None else after
