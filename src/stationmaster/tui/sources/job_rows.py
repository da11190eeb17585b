"""The overview of a station as rows of the fleet screen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stationmaster.model import State
from stationmaster.money import ZERO, MicroDollars
from stationmaster.printable import plain
from stationmaster.station.overview import Overview, OverviewRow
from stationmaster.tui.fleet import ALL, FleetRow, FleetSummary, Notice, Tone, trajectory

RUNNING, NEEDS_YOU, ENDED = "Running", "Needs you", "Ended"
GROUPS = (ALL, RUNNING, NEEDS_YOU, ENDED)

_STALL = "stall"
_PAUSES = frozenset({"loading", "caching", "sampling", "evaluating", "saving"})  # the training itself waits
_LOOKS: Mapping[str, tuple[str, str, Tone]] = {
    "QUEUED": ("⏳", "queued", Tone.NEUTRAL),
    "PROVISIONING": ("🔄", "renting", Tone.NEUTRAL),
    "TRANSFERRING_DATA": ("🔄", "sending", Tone.NEUTRAL),
    "EXECUTING": ("✅", "training", Tone.GOOD),
    "FETCHING_RESULTS": ("🔄", "fetching", Tone.GOOD),
    "FINALIZING": ("🔄", "saving", Tone.GOOD),
    "RELEASING": ("🔄", "ending", Tone.GOOD),
    "NEEDS_RECOVERY": ("❌", "lost", Tone.WARNING),
    "COMPLETED": ("✅", "done", Tone.NEUTRAL),
    "INCOMPLETE": ("✅", "stopped", Tone.NEUTRAL),
    "CANCELLED": ("❌", "cancelled", Tone.NEUTRAL),
    "FAILED": ("❌", "failed", Tone.BAD),
    "FAILED_PROVISIONING": ("❌", "no machine", Tone.BAD),
}


def job_row(row: OverviewRow, *, now: float) -> FleetRow:
    icon, status, tone = _LOOKS.get(row.shown, ("🔄", row.shown.lower().replace("_", " "), Tone.NEUTRAL))
    is_over = row.ended_at is not None
    needs = row.needs
    if row.shown == State.EXECUTING and row.progress.phase in _PAUSES:
        status = row.progress.phase
    if needs is not None and not is_over:
        tone = Tone.BAD if needs.kind == "release" else Tone.WARNING
        if needs.kind == _STALL:
            icon, status = "❌", "stalled"
    progress = row.progress
    share = (
        100.0 * progress.step / progress.total_steps
        if progress.step is not None and progress.total_steps
        else 100.0
        if row.shown == "COMPLETED"
        else None
    )
    return FleetRow(
        id=row.id,
        name=plain(row.name),
        status=status,
        icon=icon,
        tone=tone,
        gpu=plain(f"{row.gpus}x {row.gpu}" if row.gpu and row.gpus > 1 else row.gpu or ""),
        progress=None if share is None else min(100.0, share),
        gpu_percent=None if is_over else row.use.percent,
        memory_percent=None if is_over else _memory(row),
        loss=progress.loss,
        cost_per_hour=row.price_per_hour,
        total_cost=row.cost,
        eta_seconds=None if is_over or (needs and needs.kind == _STALL) else progress.eta_seconds,
        seen_at=now,
        is_old=row.shown == "NEEDS_RECOVERY",
        note=plain(needs.sentence if needs is not None else row.explanation or ""),
        groups=tuple(_groups(row)),
        is_over=is_over,
    )


def summary_of(overview: Overview, rows: Iterable[FleetRow]) -> FleetSummary:
    listed, summary = list(rows), overview.summary
    billing = [row.cost_per_hour for row in listed if row.cost_per_hour is not None]
    total = MicroDollars(sum((row.total_cost for row in listed), ZERO))
    return FleetSummary(
        running=summary.running,
        total=len(listed),
        errors=sum(row.tone is Tone.BAD or (row.tone is Tone.WARNING and not row.is_over) for row in listed),
        total_cost=total,
        cost_per_hour=summary.price_per_hour,
        average_cost_per_hour=MicroDollars(sum(billing, ZERO) // len(billing)) if billing else ZERO,
        gpu_percent=summary.gpu_percent,
        memory_percent=summary.memory_percent,
        trajectory=trajectory(total, summary.price_per_hour),
    )


def notices_of(before: Mapping[str, FleetRow], after: Iterable[FleetRow]) -> list[Notice]:
    """What a person wants to hear of between two looks: a training that ended, stalled, was lost or recovered."""
    return [notice for row in after if (known := before.get(row.id)) is not None for notice in _changes(known, row)]


def _changes(before: FleetRow, after: FleetRow) -> Iterable[Notice]:
    name = after.name or after.id
    if before.status != after.status and after.status in ("done", "stopped", "cancelled", "failed", "no machine"):
        why = after.note or "its model is kept" if after.status == "stopped" else after.note
        bad = after.tone is Tone.BAD
        yield Notice(
            sentence=f"{name} {_ENDINGS[after.status]}{f': {why}' if why else ''}", tone=Tone.BAD if bad else Tone.GOOD
        )
    elif _is_worse(before.tone, after.tone):
        yield Notice(sentence=f"{name}: {after.note or after.status}", tone=after.tone)
    elif before.tone in (Tone.WARNING, Tone.BAD) and after.tone is Tone.GOOD:
        yield Notice(sentence=f"{name} is {after.status} again", tone=Tone.GOOD)


_ENDINGS = {
    "done": "completed",
    "stopped": "ended",
    "cancelled": "was cancelled",
    "failed": "failed",
    "no machine": "got no machine",
}


def _is_worse(before: Tone, after: Tone) -> bool:
    return after in (Tone.WARNING, Tone.BAD) and before not in (after, Tone.BAD)


def _memory(row: OverviewRow) -> float | None:
    used, total = row.use.memory_used_gib, row.use.memory_total_gib
    return 100.0 * used / total if used is not None and total else None


def _groups(row: OverviewRow) -> Iterable[str]:
    if row.ended_at is None and row.shown != "QUEUED":
        yield RUNNING
    if row.needs is not None:
        yield NEEDS_YOU
    if row.ended_at is not None:
        yield ENDED
