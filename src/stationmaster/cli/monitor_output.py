"""What `stationmaster monitor` prints without its app: JSON, a table, or plain lines."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stationmaster.cli.context import print_json
from stationmaster.cli.render import dollars, instant
from stationmaster.money import format_dollars
from stationmaster.station.monitoring import InstanceMetrics, InstancesSummary, Snapshot

_ICONS = {"running": "✅", "loading": "🔄", "exited": "❌", "created": "⏳"}
_COLUMNS = ("ID", "GPU", "Status", "Progress", "GPU%", "Mem%", "Loss", "Cost/hr", "Total", "ETA")


def snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    """One update as JSON; names are stable, money is in dollars, unknown is null."""
    return {
        "at": instant(snapshot.at),
        "stale": snapshot.stale,
        "instances": [_instance_json(each) for each in snapshot.instances],
        "summary": _summary_json(snapshot.summary),
    }


def show(snapshot: Snapshot, *, as_json: bool, repeated: bool) -> None:
    if as_json and repeated:
        sys.stdout.write(json.dumps(snapshot_json(snapshot), ensure_ascii=False) + "\n")
        sys.stdout.flush()
    elif as_json:
        print_json(snapshot_json(snapshot))
    else:
        _print_table(snapshot)


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


def _print_table(snapshot: Snapshot) -> None:
    console = Console()
    console.print(_table(snapshot))
    console.print(_summary_line(snapshot.summary), markup=False, highlight=False)


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
