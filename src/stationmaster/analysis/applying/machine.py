"""Recommendations for the machine that a job can ask for itself: memory of the GPU, disk, another host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stationmaster.analysis.applying.fitting import DoesNotFit
from stationmaster.analysis.levers import Lever
from stationmaster.model import MachineWish
from stationmaster.recipes.schema import Needs

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WishChange:
    wish: MachineWish
    before: Any
    after: Any
    note: str | None = None


def can_be_asked_for(lever: Lever) -> bool:
    """Whether a job can ask for this of its machine."""
    return lever in _OF_THE_HOST or lever in (Lever.MACHINE_GPU_MEMORY, Lever.MACHINE_DISK_SIZE)


def changed_wish(lever: Lever, recommended: Any, *, wish: MachineWish, needs: Needs, host: str | None) -> WishChange:
    """Return what to ask of the next machine; `host` is the last one. Raises DoesNotFit, with the reason."""
    if lever in _OF_THE_HOST:
        return _another_host(wish, host)
    wanted = recommended if isinstance(recommended, int | float) and not isinstance(recommended, bool) else None
    if wanted is None:
        raise DoesNotFit("the analysis has no number for it")
    if lever is Lever.MACHINE_DISK_SIZE:
        before = max(needs.disk_gib, wish.disk_gib or 0.0)
        if wanted <= before:
            raise DoesNotFit(f"the job asks for {before:g} GiB of disk already")
        return WishChange(wish=replace(wish, disk_gib=float(wanted)), before=before, after=wanted)
    return _gpu_memory(float(wanted), wish, needs)


def _gpu_memory(wanted: float, wish: MachineWish, needs: Needs) -> WishChange:
    before, least = max(needs.vram_gib, wish.vram_gib or 0.0), round(wanted * _SHOWN_SHARE, 2)
    if needs.gpus == 0:
        raise DoesNotFit("the recipe asks for no GPU")
    if least <= before:
        raise DoesNotFit(
            f"the job takes GPUs from {before:g} GiB already: the offers decide; --max-price keeps out dear ones"
        )
    note = f"at least {least:g} GiB, which cards of {wanted:g} GB have"
    return WishChange(wish=replace(wish, vram_gib=least), before=before, after=least, note=note)


def _another_host(wish: MachineWish, host: str | None) -> WishChange:
    if host is None:
        raise DoesNotFit("the provider has no other machine, or does not identify them")
    if host in wish.avoided_machines:
        raise DoesNotFit(f"the job avoids machine {host} already")
    avoided = (*wish.avoided_machines, host)
    return WishChange(wish=replace(wish, avoided_machines=avoided), before=host, after=f"any but {host}")
