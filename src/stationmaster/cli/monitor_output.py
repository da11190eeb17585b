"""What `stationmaster monitor` prints without its app: JSON, a table, or plain lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stationmaster.cli.context import print_json, printable
from stationmaster.cli.render import dollars, instant
from stationmaster.money import format_dollars
from stationmaster.station.monitoring import (
    InstanceHealth,
    InstanceMetrics,
    InstancesSummary,
    MonitorFeed,
    MonitorLook,
    Snapshot,
    health_reason,
)

_ICONS = {"running": "✅", "loading": "🔄", "exited": "❌", "created": "⏳"}
_MADE_UP = "MOCK DATA: these machines are made up."
_COMPLETE_SECONDS = 10.0  # the longest that a machine's log may take
_COLUMNS = ("ID", "GPU", "Status", "Progress", "GPU%", "Mem%", "Loss", "Cost/hr", "Total", "ETA")


class Output(Protocol):
    def show(self, look: MonitorLook) -> None: ...


def print_looks(feed: MonitorFeed, output: Output, *, every_seconds: float, once: bool) -> int:
    """Print one look per interval until interrupted or, with `once`, one in all; the exit code."""
    for look in _looks(feed, every_seconds=every_seconds):
        output.show(look)
        sys.stdout.flush()
        if once:
            return 1 if look.snapshot.stale else 0
        if look.last and look.complete:
            break
    return 0


class JsonOutput:
    """One object per line, or one in all."""

    def __init__(self, *, repeated: bool) -> None:
        self._repeated = repeated

    def show(self, look: MonitorLook) -> None:
        if self._repeated:
            sys.stdout.write(json.dumps(look_json(look), ensure_ascii=False) + "\n")
        else:
            print_json(look_json(look))


class TableOutput:
    def show(self, look: MonitorLook) -> None:
        console = Console()
        if look.snapshot.made_up:
            console.print(_MADE_UP, markup=False, highlight=False)
        console.print(_table(look.snapshot))
        console.print(_summary_line(look.snapshot.summary), markup=False, highlight=False)


class PlainOutput:
    """Sentences without signs that cannot be read out. After the first look only machines that changed are printed:
    in status, health or whole percents."""

    def __init__(self) -> None:
        self._printed: dict[str, tuple[object, ...]] = {}

    def show(self, look: MonitorLook) -> None:
        snapshot = look.snapshot
        lines = [_MADE_UP] if snapshot.made_up and not self._printed else []
        for instance in snapshot.instances:
            state = _spoken_state(instance)
            if self._printed.get(instance.id) != state:
                lines.append(_sentence(instance))
        lines += [f"Notice: {printable(notice.sentence)}" for notice in look.notices]
        self._printed = {instance.id: _spoken_state(instance) for instance in snapshot.instances}
        if lines or not snapshot.instances:
            lines.append(f"Summary: {_summary_line(snapshot.summary)}")
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def look_json(look: MonitorLook) -> dict[str, Any]:
    """One update as JSON; names are stable, money is in dollars, unknown is null."""
    snapshot = look.snapshot
    return {
        "at": instant(snapshot.at),
        "stale": snapshot.stale,
        "made_up": snapshot.made_up,
        "instances": [_instance_json(each) for each in snapshot.instances],
        "summary": _summary_json(snapshot.summary),
        "notices": [
            {"at": instant(each.at), "instance": each.instance, "kind": each.kind.value, "sentence": each.sentence}
            for each in look.notices
        ],
    }


def _looks(feed: MonitorFeed, *, every_seconds: float) -> Iterator[MonitorLook]:
    """One look per interval: the first complete one, or at its end the newest."""
    while True:
        began, newest = time.monotonic(), None
        limit = began + max(every_seconds, _COMPLETE_SECONDS)
        while newest is None or not (newest.complete or time.monotonic() > limit):
            look = feed.next(seconds=0.5)
            if look is not None and newest is not None:
                look = replace(
                    look, warnings=(*newest.warnings, *look.warnings), notices=(*newest.notices, *look.notices)
                )
            newest = look or newest
        yield newest
        time.sleep(max(0.0, began + every_seconds - time.monotonic()))


def _instance_json(instance: InstanceMetrics) -> dict[str, Any]:
    return {
        "id": instance.id,
        "label": instance.label,
        "gpu_type": instance.gpu_type,
        "status": instance.status,
        "health": instance.health_status().value,
        "epoch": instance.epoch,
        "total_epochs": instance.total_epochs,
        "step": instance.step,
        "total_steps": instance.total_steps,
        "progress_percentage": _rounded(instance.progress_percentage()),
        "loss": instance.loss,
        "gpu_percent": instance.gpu_percent,
        "memory_percent": _rounded(instance.memory_percent),
        "cost_per_hour_usd": dollars(instance.cost_per_hour),
        "total_cost_usd": dollars(instance.total_cost),
        "runtime_seconds": _rounded(instance.runtime_seconds),
        "eta_seconds": _rounded(instance.eta_seconds()),
        "eta": instance.eta(),
        "logs": list(instance.logs),
        "logged_lines": instance.logged_lines,
        "groups": list(instance.groups),
        "ssh": instance.ssh,
        "seen_at": instant(instance.seen_at or None),
        "stale": instance.stale,
        "problem": instance.problem,
    }


def _summary_json(summary: InstancesSummary) -> dict[str, Any]:
    return {
        "running": summary.running,
        "instances": summary.instances,
        "errors": summary.errors,
        "total_cost_usd": dollars(summary.total_cost),
        "cost_per_hour_usd": dollars(summary.cost_per_hour),
        "average_cost_per_hour_usd": dollars(summary.average_cost_per_hour),
        "average_gpu_percent": _rounded(summary.average_gpu_percent),
        "average_memory_percent": _rounded(summary.average_memory_percent),
        "trajectory": [{"in_hours": hours, "total_cost_usd": dollars(amount)} for hours, amount in summary.trajectory],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _table(snapshot: Snapshot) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in _COLUMNS:
        table.add_column(column, no_wrap=True)
    colours = {"healthy": "green", "warning": "yellow", "error": "red"}
    for instance in snapshot.instances:
        style = colours.get(instance.health_status().value, "")
        table.add_row(*(Text(cell, style=style) for cell in _cells(instance)))
    return table


def _cells(instance: InstanceMetrics) -> tuple[str, ...]:
    status = f"{_ICONS.get(instance.status, '•')} {instance.status}{' (old)' if instance.stale else ''}"
    return (
        instance.id,
        instance.gpu_type,
        status,
        _progress(instance),
        _percent(instance.gpu_percent),
        _percent(instance.memory_percent),
        "N/A" if instance.loss is None else f"{instance.loss:.3f}",
        format_dollars(instance.cost_per_hour, 3),
        format_dollars(instance.total_cost),
        instance.eta(),
    )


def _progress(instance: InstanceMetrics) -> str:
    """The epoch and the percentage, as far as known."""
    share = instance.progress_percentage()
    epochs = f"{instance.epoch:g}/{instance.total_epochs} " if instance.epoch and instance.total_epochs else ""
    return f"{epochs}{'' if share is None else f'{share:.0f}%'}".strip() or "N/A"


def _summary_line(summary: InstancesSummary) -> str:
    money = f"{format_dollars(summary.total_cost)} so far, {format_dollars(summary.cost_per_hour, 3)} per hour"
    average = f"GPU {_percent(summary.average_gpu_percent)}, memory {_percent(summary.average_memory_percent)}"
    return f"running {summary.running}/{summary.instances}, errors {summary.errors}; {money}; {average}"


def _percent(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.1f}%"


def _spoken_state(instance: InstanceMetrics) -> tuple[object, ...]:
    """What makes it worth to read a machine out again."""
    share = instance.progress_percentage()
    return (
        instance.status,
        instance.health_status(),
        instance.stale,
        instance.problem,
        instance.epoch and int(instance.epoch),
        None if share is None else int(share),
    )


def _sentence(instance: InstanceMetrics) -> str:
    health = instance.health_status()
    is_bad = health in (InstanceHealth.WARNING, InstanceHealth.ERROR)
    share = instance.progress_percentage()
    epochs = (
        f"epoch {instance.epoch:g} of {instance.total_epochs}, " if instance.epoch and instance.total_epochs else ""
    )
    words = [
        f"{instance.id}: {printable(instance.label)}" if instance.label else f"{instance.id}:",
        printable(instance.gpu_type),
        instance.status,
        f"{health.value} because {health_reason(instance)}" if is_bad else health.value,
        f"{epochs}progress {'N/A' if share is None else f'{share:.0f}%'}",
        f"GPU {_percent(instance.gpu_percent)}",
        f"memory {_percent(instance.memory_percent)}",
        f"loss {'N/A' if instance.loss is None else f'{instance.loss:.3f}'}",
        f"{format_dollars(instance.cost_per_hour, 3)} per hour",
        f"{format_dollars(instance.total_cost)} so far",
        f"time left {instance.eta()}",
    ]
    words += ["old values"] if instance.stale else []
    words += [f"no log: {printable(instance.problem)}"] if instance.problem else []
    return ", ".join(words)
