"""Rented machines as rows of the fleet screen. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from stationmaster.durations import format_duration
from stationmaster.printable import plain
from stationmaster.station.monitoring import (
    InstanceHealth,
    InstanceMetrics,
    InstancesSummary,
    Notice,
    NoticeKind,
    health_reason,
)
from stationmaster.tui.fleet import FleetRow, FleetSummary, Tone
from stationmaster.tui.fleet import Notice as Shown

_ICONS = {"running": "✅", "loading": "🔄", "exited": "❌", "stopped": "❌", "offline": "❌", "created": "⏳"}
_TONES = {
    InstanceHealth.HEALTHY: Tone.GOOD,
    InstanceHealth.WARNING: Tone.WARNING,
    InstanceHealth.ERROR: Tone.BAD,
    InstanceHealth.NEUTRAL: Tone.NEUTRAL,
}


def machine_row(machine: InstanceMetrics, *, now: float) -> FleetRow:
    return FleetRow(
        id=machine.id,
        name=plain(machine.label),
        status=f"{age_of(machine, now=now)} old" if machine.stale else plain(machine.status),
        icon=_ICONS.get(machine.status, "• "),
        tone=tone_of(machine),
        gpu=plain(machine.gpu_type),
        epoch=machine.epoch,
        total_epochs=machine.total_epochs,
        progress=machine.progress_percentage(),
        gpu_percent=machine.gpu_percent,
        memory_percent=machine.memory_percent,
        loss=machine.loss,
        cost_per_hour=machine.cost_per_hour,
        total_cost=machine.total_cost,
        eta_seconds=machine.eta_seconds(),
        seen_at=machine.seen_at,
        is_old=machine.stale,
        note=plain(note_of(machine)),
        groups=machine.groups,
        is_over=machine.status in ("exited", "stopped"),
    )


def tone_of(machine: InstanceMetrics) -> Tone:
    return _TONES[machine.health_status()]


def note_of(machine: InstanceMetrics) -> str:
    """Why it is not healthy, and why its log cannot be read."""
    reason = health_reason(machine) if tone_of(machine) in (Tone.WARNING, Tone.BAD) else ""
    return "; ".join(each for each in (reason, machine.problem or "") if each)


def age_of(machine: InstanceMetrics, *, now: float) -> str:
    """How old its values are, in its largest unit: what fits into a narrow column."""
    if not machine.seen_at:
        return "?"
    age = max(0.0, now - machine.seen_at)
    unit = next((unit for unit in (86400.0, 3600.0, 60.0) if age >= unit), 1.0)
    return format_duration(age // unit * unit) if unit < 86400 else f"{age // unit:.0f}d"


def summary_of(summary: InstancesSummary) -> FleetSummary:
    return FleetSummary(
        running=summary.running,
        total=summary.instances,
        errors=summary.errors,
        total_cost=summary.total_cost,
        cost_per_hour=summary.cost_per_hour,
        average_cost_per_hour=summary.average_cost_per_hour,
        gpu_percent=summary.average_gpu_percent,
        memory_percent=summary.average_memory_percent,
        trajectory=summary.trajectory,
    )


def shown_notice(notice: Notice, machines: Mapping[str, InstanceMetrics]) -> Shown:
    machine = machines.get(notice.instance)
    match notice.kind:
        case NoticeKind.EXITED:
            tone = Tone.BAD
        case NoticeKind.HEALTH:
            tone = tone_of(machine) if machine is not None else Tone.WARNING
        case _:
            tone = Tone.GOOD
    return Shown(sentence=plain(notice.sentence), tone=tone)
