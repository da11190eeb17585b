"""One line of the overview, and the figures of all lines together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stationmaster.event_sentences import sentence
from stationmaster.lifecycle import is_parked, progress_shown, shown, stage
from stationmaster.model import Alert, CostLine, Event, Job, Offer, Rental, RunHealth, State
from stationmaster.money import ZERO, MicroDollars
from stationmaster.series.large_numbers import mean
from stationmaster.station.local.job_views import is_released
from stationmaster.station.overview import GpuUse, Needs, OverviewRow, Summary

_MIB_PER_GIB = 1024
_RECENT_SECONDS = 600.0  # an older sample no longer shows what the GPU does
_URGENT = ("internal_error", "release", "silence", "stall")  # the alerts that a person should see first


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """What belongs to a job, besides its own row."""

    rentals: Sequence[Rental]
    costs: Sequence[CostLine]
    alerts: Sequence[Alert]
    waiting: Sequence[Event]  # that it waits for an offer
    trend: tuple[float, ...]
    health: RunHealth | None


def overview_row(job: Job, its: Belongings, *, now: float) -> OverviewRow:
    offer = next((rental.offer for rental in reversed(its.rentals) if rental.offer and not rental.surplus), None)
    gpu, gpus = _gpu(job, offer)
    billing = [line.rate_per_hour for line in its.costs if line.ended_at is None]
    return OverviewRow(
        id=job.id,
        name=job.spec.name,
        owner=job.spec.owner,
        recipe=job.spec.recipe,
        provider=job.spec.provider,
        shown=shown(job, now=now),
        stage=stage(job, is_released=is_released(its.rentals)),
        state_since=job.state_since,
        created_at=job.created_at,
        ended_at=job.ended_at,
        progress=progress_shown(job),
        loss_trend=its.trend,
        gpu=gpu,
        gpus=gpus,
        use=_use(job, now=now),
        price_per_hour=MicroDollars(sum(billing)) if billing else None,
        cost=MicroDollars(sum((line.so_far(now=now) for line in its.costs), ZERO)),
        quoted=job.spec.quote.cost_expected,
        max_spend=job.spec.max_spend,
        health=None if its.health is None else its.health.health,
        explanation=job.explanation,
        needs=_needs(job, its, now=now),
    )


def summary_of(
    rows: Sequence[OverviewRow], *, failed: int, price: MicroDollars, today: MicroDollars, total: MicroDollars
) -> Summary:
    unfinished = [row for row in rows if row.ended_at is None]
    queued = sum(row.shown == State.QUEUED for row in unfinished)
    percents = [row.use.percent for row in unfinished if row.use.percent is not None]
    return Summary(
        running=len(unfinished) - queued,
        queued=queued,
        unfinished=len(unfinished),
        needing=sum(row.needs is not None for row in rows),
        failed=failed,
        price_per_hour=price,
        spent_today=today,
        spent_total=total,
        gpu_percent=mean(percents) if percents else None,
        memory_percent=_mean_memory(unfinished),
    )


def _mean_memory(rows: Sequence[OverviewRow]) -> float | None:
    shares = [
        100.0 * row.use.memory_used_gib / row.use.memory_total_gib
        for row in rows
        if row.use.memory_used_gib is not None and row.use.memory_total_gib
    ]
    return mean(shares) if shares else None


def _gpu(job: Job, offer: Offer | None) -> tuple[str | None, int]:
    if offer is not None and offer.gpu is not None:
        return offer.gpu, offer.gpus
    return job.spec.quote.gpu, 0


def _use(job: Job, *, now: float) -> GpuUse:
    """As the vital signs have it, which keep a row of time, percent, used and total MiB for each look."""
    if job.state is not State.EXECUTING:
        return GpuUse()
    newest = [rows[-1] for rows in (job.watching.vitals or {}).get("gpus", ()) if rows]
    newest = [row for row in newest if now - row[0] < _RECENT_SECONDS]
    percents = [float(row[1]) for row in newest if row[1] is not None]
    sizes = [(float(row[2]), float(row[3])) for row in newest if row[2] is not None and row[3]]
    used, total = max(sizes, key=lambda size: size[0] / size[1]) if sizes else (None, None)
    return GpuUse(
        percent=mean(percents) if percents else None,
        memory_used_gib=None if used is None else used / _MIB_PER_GIB,
        memory_total_gib=None if total is None else total / _MIB_PER_GIB,
    )


def _needs(job: Job, its: Belongings, *, now: float) -> Needs | None:
    alerts = sorted(its.alerts, key=lambda alert: (alert.kind not in _URGENT, -alert.at))
    if is_parked(job):
        parked = next((alert for alert in alerts if alert.kind == "parked"), None)
        assert job.ending.parked is not None, "the job's machine is parked"
        return Needs(
            kind="parked",
            sentence=_line(job.ending.parked.why if parked is None else parked.message),
            since=job.ending.parked.at if parked is None else parked.at,
        )
    if job.state is State.PROVISIONING and its.waiting and its.waiting[-1].at >= job.state_since:
        last = its.waiting[-1]
        return Needs(kind="waiting_for_offer", sentence=sentence(last.kind, last.payload), since=last.at)
    if alerts:
        return Needs(kind=alerts[0].kind, sentence=_line(alerts[0].message), since=alerts[0].at)
    if job.outcome is None and job.unreachable_since is not None:
        minutes = max(0, round((now - job.unreachable_since) / 60))
        return Needs(
            kind="unreachable", sentence=f"Its machine has not answered for {minutes} min; a worker keeps trying."
        )
    if shown(job, now=now) == "NEEDS_RECOVERY":
        return Needs(kind="no_worker", sentence="No worker looks after it; one that starts continues it.")
    return None


def _line(message: str) -> str:
    """A message as a sentence.

    >>> _line("no answer for 3 min")
    'No answer for 3 min.'
    """
    text = " ".join(message.split())
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
