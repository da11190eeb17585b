"""Recommendations for the machine that a job can ask for itself: GPU, disk, its container's limits, another host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stationmaster.analysis.applying.fitting import DoesNotFit
from stationmaster.analysis.levers import Lever
from stationmaster.model import MachineWish
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.wishes import with_wish

_SHOWN_SHARE = 0.93
"""A card shows less memory than it is sold with: an L40S of 48 GB has 45.0 GiB, an H100 of 80 GB 79.6."""

_OF_THE_HOST = frozenset(
    {
        Lever.MACHINE_HOST,
        Lever.MACHINE_COOLING,
        Lever.MACHINE_DISK,
        Lever.MACHINE_DRIVER,
        Lever.MACHINE_NETWORK,
        Lever.MACHINE_POWER,
    }
)
"""What only another host has."""

_SIZES = {
    Lever.MACHINE_DISK_SIZE: "disk_gib",
    Lever.MACHINE_GPU_MEMORY: "vram_gib",
    Lever.MACHINE_MEMORY: "memory_gib",
    Lever.MACHINE_SHM: "shm_gib",
}
"""The field of a wish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WishChange:
    wish: MachineWish
    before: Any
    after: Any
    note: str | None = None


def can_be_asked_for(lever: Lever, recipe: Recipe) -> bool:
    """Whether a job of this recipe can ask for this: sizes of memory are limits of its container, if it has one."""
    return lever in _OF_THE_HOST or (lever in _SIZES and _size(lever, recipe) is not None)


def changed_wish(lever: Lever, recommended: Any, *, wish: MachineWish, recipe: Recipe, host: str | None) -> WishChange:
    """Return what to ask of the next machine; `host` is the last one. Raises DoesNotFit, with the reason."""
    if lever in _OF_THE_HOST:
        return _another_host(wish, host)
    before = _size(lever, with_wish(recipe, wish)) or 0.0
    if isinstance(recommended, bool) or not isinstance(recommended, int | float):
        raise DoesNotFit("the analysis has no number for it")
    after, note = float(recommended), None
    if lever is Lever.MACHINE_GPU_MEMORY:
        after = round(recommended * _SHOWN_SHARE, 2)
        note = f"at least {after:g} GiB, which cards of {recommended:g} GB have"
    if after <= before:
        raise DoesNotFit(f"the job takes machines from {before:g} GB on already: offers and price decide")
    raised: dict[str, Any] = {_SIZES[lever]: after}
    return WishChange(wish=replace(wish, **raised), before=before, after=after, note=note)


def _size(lever: Lever, recipe: Recipe) -> float | None:
    """What the recipe asks for; None if it cannot ask for it."""
    match lever:
        case Lever.MACHINE_DISK_SIZE:
            return recipe.needs.disk_gib
        case Lever.MACHINE_GPU_MEMORY if recipe.needs.gpus:
            return recipe.needs.vram_gib
        case Lever.MACHINE_MEMORY if recipe.container:
            return recipe.container.memory_gib
        case Lever.MACHINE_SHM if recipe.container:
            return recipe.container.shm_gib
    return None


def _another_host(wish: MachineWish, host: str | None) -> WishChange:
    if host is None:
        raise DoesNotFit("the provider has no other machine, or does not identify them")
    if host in wish.avoided_machines:
        raise DoesNotFit(f"the job avoids machine {host} already")
    avoided = (*wish.avoided_machines, host)
    return WishChange(wish=replace(wish, avoided_machines=avoided), before=host, after=f"any but {host}")
