"""Which offer a quote is for: the best one with enough GPU memory, or the card that a person asks about."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stationmaster.errors import DiskFull, NoOfferFits, NotFound
from stationmaster.estimate import (
    Card,
    MemoryEstimate,
    change_that_fits,
    estimate_memory,
    fit_warning,
    fits_well,
    gpu_memory_gib,
    why_unknown,
)
from stationmaster.model import FinishedRun, Offer, Requirements
from stationmaster.money import ZERO
from stationmaster.offers import least_vram_mib, mentions, sold_vram_gib
from stationmaster.providers.base import Provider
from stationmaster.providers.no_offer import why_no_offer
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import Recipe

MOST_SHOWN = 5
"""At most this many offers are shown to choose from, besides the one that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCard:
    """A card that a person asks about, by name, memory as sold, or both."""

    name: str | None = None
    vram_gib: float | None = None

    def is_of(self, offer: Offer) -> bool:
        if self.name is not None and not mentions(offer.gpu, self.name):
            return False
        if self.vram_gib is None:
            return True
        return least_vram_mib(self.vram_gib) <= offer.vram_gib * 1024 <= least_vram_mib(self.vram_gib) * 1.15

    def __str__(self) -> str:
        size = None if self.vram_gib is None else f"{self.vram_gib:g} GiB of GPU memory"
        return " with ".join(part for part in (self.name, size) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The offer of a quote, and the GPU memory that the job takes on it."""

    offer: Offer
    memory: MemoryEstimate | None
    memory_basis: str
    min_vram_gib: float
    notes: tuple[str, ...]
    is_offered: bool = True  # False: the card that was asked about is not offered now, so it has no price


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The offer of a quote and the others of the same search that a person may take instead, best first."""

    chosen: Choice
    shown: tuple[Choice, ...] = ()  # `chosen` included


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """Chooses an offer for one job, whose memory is predicted from the recipe's model and earlier runs."""

    recipe: Recipe
    parameters: Mapping[str, ParameterValue]
    past: Sequence[FinishedRun]
    provider: Provider
    home: Path
    needs_room: bool = True  # False: if this computer is the machine and lacks the disk, that is a note

    def choices(self, want: Requirements, *, offer_id: str | None = None) -> Choices:
        """The offer with this id, by default the best one, and the best offers of the same search.

        Where more memory is expected than the recipe declares, cards with less are left out. If there is no larger
        one, the offers for the declared need count: a prediction only warns. Raises NoOfferFits, NotFound if the offer
        is not among those that fit, and DiskFull if this computer is the machine and has too little disk.
        """
        lack = None if self.needs_room else self._lack_of_room(want)
        if lack is not None:
            found = self.choices(replace(want, disk_gib=0.0), offer_id=offer_id)
            return Choices(chosen=replace(found.chosen, notes=(f"{lack}: it cannot start here", *found.chosen.notes)))
        expected = self._memory(self.parameters)
        raised = _raised(want, expected)
        offers = self._offers(raised) or (self._offers(want) if raised is not want else [])
        if not offers:
            raise self._no_offer(want)

        def choice_of(offer: Offer) -> Choice:
            is_raised = raised is not want and offer.vram_gib * 1024 >= least_vram_mib(raised.vram_gib)
            notes = (_raised_note(raised, want, expected),) if is_raised and expected else ()
            choice = self._choice(offer, offers, min_vram_gib=raised.vram_gib if is_raised else want.vram_gib)
            return replace(choice, notes=(*notes, *choice.notes))

        chosen = offers[0] if offer_id is None else self._with_id(offer_id, offers)
        shown = [offer for index, offer in enumerate(offers) if index < MOST_SHOWN or offer is chosen]
        return Choices(chosen=choice_of(chosen), shown=tuple(choice_of(offer) for offer in shown))

    def unoffered(self, want: Requirements) -> Choice:
        """A machine as the recipe expects it, without a price: for a plan while nothing can be rented."""
        gpu = self.recipe.time.reference_gpu if want.gpus else None
        offer = Offer(
            id="",
            provider=self.provider.name,
            price_per_hour=ZERO,
            gpu=gpu,
            gpus=want.gpus,
            vram_gib=gpu_memory_gib(gpu or "") or 0.0,
        )
        return replace(self._choice(offer, (), min_vram_gib=want.vram_gib), is_offered=False)

    def asked_about(self, card: AskedCard, want: Requirements) -> Choice:
        """The best offer with the card, whatever it needs; without one, the card itself, which then has no price."""
        everything = self._offers(replace(want, vram_gib=0.0))
        with_card = [offer for offer in everything if card.is_of(offer)]
        if with_card:
            return self._choice(with_card[0], everything, min_vram_gib=want.vram_gib)
        size = card.vram_gib or gpu_memory_gib(card.name or "") or 0.0
        offer = Offer(
            id="",
            provider=self.provider.name,
            price_per_hour=ZERO,
            gpu=card.name,
            gpus=self.recipe.needs.gpus,
            vram_gib=size,
        )
        choice = self._choice(offer, everything, min_vram_gib=want.vram_gib)
        note = f"{self.provider.name} offers no {card} now, so there is no price"
        return replace(choice, notes=(*choice.notes, note), is_offered=False)

    def _choice(self, offer: Offer, offers: Sequence[Offer], *, min_vram_gib: float) -> Choice:
        memory = self._memory(self.parameters, offer)
        warning = None if memory is None or not offer.vram_gib else self._warning(memory, offer, offers)
        return Choice(
            offer=offer,
            memory=memory,
            memory_basis=why_unknown(self.recipe) if memory is None else memory.basis,
            min_vram_gib=min_vram_gib,
            notes=() if warning is None else (warning,),
        )

    def _warning(self, memory: MemoryEstimate, offer: Offer, offers: Sequence[Offer]) -> str | None:
        if fits_well(memory, offer.vram_gib):
            return None
        change = change_that_fits(
            self.recipe,
            self.parameters,
            lambda parameters: self._memory(parameters, offer),
            size_gib=offer.vram_gib,
        )
        larger = [one for one in offers if one.vram_gib > offer.vram_gib and fits_well(memory, one.vram_gib)]
        return fit_warning(
            memory,
            Card(name=offer.gpu, gib=offer.vram_gib),
            change=change,
            larger=min(larger, key=lambda one: one.price_per_hour, default=None),
        )

    def _memory(self, parameters: Mapping[str, ParameterValue], offer: Offer | None = None) -> MemoryEstimate | None:
        return estimate_memory(
            self.recipe,
            parameters,
            gpu=None if offer is None else offer.gpu,
            gpu_gib=None if offer is None else offer.vram_gib or None,
            past=self.past,
        )

    def _offers(self, want: Requirements) -> list[Offer]:
        return asyncio.run(self.provider.offers(want))

    def _with_id(self, offer_id: str, offers: Sequence[Offer]) -> Offer:
        for offer in offers:
            if offer.id == offer_id:
                return offer
        raise NotFound(
            f"{self.provider.name} has no offer {offer_id} that fits {self.recipe.reference} now",
            hint=f"`{self._search}` shows what is offered, or leave out --offer to get the best one",
        )

    @property
    def _search(self) -> str:
        return f"stationmaster offers --recipe {self.recipe.reference} --provider {self.provider.name}"

    def _lack_of_room(self, want: Requirements) -> str | None:
        """Why this computer's disk is too small for the training; None for any other machine."""
        if self.provider.name != "loopback":
            return None
        free_gib = shutil.disk_usage(self.home).free / 1024**3
        if free_gib >= want.disk_gib:
            return None
        return f"{self.home} has {free_gib:.2f} GiB of free disk, the training needs {want.disk_gib:g} GiB"

    def _no_offer(self, want: Requirements) -> NoOfferFits | DiskFull:
        if (lack := self._lack_of_room(want)) is not None:
            return DiskFull(lack, hint="free some disk space, or set STATIONMASTER_HOME to a folder on a larger disk")
        none = asyncio.run(why_no_offer(self.provider, want))
        return NoOfferFits(
            f"no offer of {self.provider.name} fits {self.recipe.reference}: {none.why}",
            hint=f"{none.what_helps}; `{self._search}` shows what is offered",
        )


def _raised(want: Requirements, memory: MemoryEstimate | None) -> Requirements:
    if memory is None or memory.expected_gib <= want.vram_gib:
        return want
    return replace(want, vram_gib=sold_vram_gib(memory.expected_gib))


def _raised_note(raised: Requirements, want: Requirements, memory: MemoryEstimate) -> str:
    return (
        f"only GPUs with at least {least_vram_mib(raised.vram_gib) / 1024:.1f} GiB of memory are considered, because "
        f"{memory.expected_gib:.1f} GiB are expected; without the prediction it would be {want.vram_gib:g} GiB"
    )
