"""A new job that follows the analysis of an old one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stationmaster.analysis.applying.apply import OldJob, follow
from stationmaster.analysis.report import Report
from stationmaster.errors import UserError
from stationmaster.model import JobSpec, Rental, SkippedAdvice
from stationmaster.money import MicroDollars
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.schema import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A job like an old one, before it has a quote."""

    spec: JobSpec
    skipped: tuple[SkippedAdvice, ...] = ()
    notes: tuple[str, ...] = ()
    max_hours: float | None = None  # new limits; None: as the old job's
    max_spend: MicroDollars | None = None


def follow_analysis(
    old: JobSpec,
    report: Report,
    *,
    recipe: Recipe,
    rentals: Sequence[Rental],
    only: Sequence[str] = (),
    resuming: bool = False,
) -> Again:
    """Return the old job with what its analysis recommends. Raises UserError if none of it can be applied."""
    job = OldJob(
        id=old.id,
        recipe=recipe,
        parameters=resolve(recipe, dict(old.parameters)),
        wish=old.machine,
        host=_last_host(rentals),
    )
    found = follow(report, job, only=only, resuming=resuming)
    if not found.applied:
        raise UserError(f"no recommendation for job {old.id} can be applied", hint=_reasons(found.skipped))
    changed = {one.what: found.parameters[one.what] for one in found.applied if one.what in found.parameters}
    spec = replace(old, parameters={**old.parameters, **changed}, machine=found.wish, applied=found.applied)
    return Again(spec=spec, skipped=found.skipped, notes=found.notes)


def _last_host(rentals: Sequence[Rental]) -> str | None:
    hosts = [rental.offer.machine_id for rental in rentals if rental.offer is not None and not rental.surplus]
    return hosts[-1] if hosts else None


def _reasons(skipped: Sequence[SkippedAdvice]) -> str:
    return "; ".join(f"{one.number}. {one.config_path}: {one.why}" for one in skipped)
