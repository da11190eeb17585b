"""A new job like an old one, with what a person changed in it."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.model import AppliedAdvice, JobSpec, MachineWish, SkippedAdvice
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.schema import Recipe
from stationmaster.station.local.proposing.following import Again
from stationmaster.station.local.proposing.naming import checked_name
from stationmaster.station.proposals import RetryChanges


def with_changes(again: Again, changes: RetryChanges, recipe: Recipe) -> Again:
    """Raises UserError for a name, a parameter or a value that is not allowed.

    Advice that a change overrules is no longer called followed.
    """
    spec = again.spec
    resolved = resolve(recipe, {**spec.parameters, **changes.parameters})
    changed = {name: resolved[name] for name in changes.parameters}
    overruled = [one for one in spec.applied if one.what in changed and changed[one.what] != one.after]
    spec = replace(
        spec,
        name=spec.name if changes.name is None else checked_name(changes.name),
        trigger=spec.trigger if changes.trigger is None else changes.trigger,
        parameters={**spec.parameters, **changed},
        max_price_per_hour=changes.max_price or spec.max_price_per_hour,
        machine=_joined(spec.machine, changes.machine),
        applied=tuple(one for one in spec.applied if one not in overruled),
    )
    return replace(
        again,
        spec=spec,
        skipped=(*again.skipped, *(_skipped(one, spec) for one in overruled)),
        max_hours=changes.max_hours,
        max_spend=changes.max_spend,
    )


def _joined(wish: MachineWish, asked: MachineWish) -> MachineWish:
    return replace(
        wish,
        gpus=asked.gpus if asked.gpus is not None else wish.gpus,
        vram_gib=asked.vram_gib or wish.vram_gib,
        disk_gib=asked.disk_gib or wish.disk_gib,
    )


def _skipped(one: AppliedAdvice, spec: JobSpec) -> SkippedAdvice:
    return SkippedAdvice(
        number=one.number,
        severity=one.severity,
        title=one.title,
        config_path=one.config_path,
        recommended_value=one.after,
        why=f"{one.what} was set to {spec.parameters[one.what]} instead",
    )
