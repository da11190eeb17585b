"""The quote of a training: from the recipe's models, past runs like it, and the current offers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stationmaster.control.states.provisioning.market import credit_shortage, known_credit
from stationmaster.errors import AccessRefused, NoOfferFits
from stationmaster.estimate import Estimate, estimate, scaling
from stationmaster.model import FinishedRun, Offer, Quote, Requirements
from stationmaster.money import MicroDollars
from stationmaster.providers.base import Provider
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import Recipe
from stationmaster.station.local.proposing.offer_choice import AskedCard, Choice, Chooser

_START_SECONDS = 180.0  # until a rented machine accepts a login, plus its release
_SLOW_START_SECONDS = 600.0  # the same with a large image and a slow network
_BYTES_PER_SECOND = 4e6  # of the dataset's upload to the machine
_SLOW_BYTES_PER_SECOND = 1e6
_TRAFFIC_SHARE_OF_DISK = 0.5  # roughly: downloads to and from the machine, relative to the recipe's disk

PastRuns = Callable[[str], Sequence[FinishedRun]]
"""Returns the successful runs of a recipe, given by its reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The training to quote."""

    recipe: Recipe
    parameters: Mapping[str, ParameterValue]
    images: int
    dataset_bytes: int = 0
    max_price: MicroDollars | None = None
    avoided_machines: tuple[str, ...] = ()
    card: AskedCard | None = None  # instead of the best offer
    is_dry_run: bool = False  # if this computer is the machine and lacks the disk, that is a note
    needs_offer: bool = True  # False: if nothing can be rented now, the quote has no price
    offer: str | None = None  # id of the offer to quote; None: the best


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A quote with its assumptions."""

    quote: Quote
    notes: tuple[str, ...]
    offer: Offer
    is_offered: bool = True  # False: for a card that is not offered now, so its price is unknown
    alternatives: tuple[Quoted, ...] = ()  # the best offers of the same search, this one included; none if it is free
    no_offer: str | None = None  # why nothing can be rented now, and what helps


def quote_work(work: Work, provider: Provider, *, past_runs: PastRuns, home: Path) -> Quoted:
    """Hours, cost and GPU memory on the best offer, and the assumptions. Raises NoOfferFits, NotFound.

    Everything that is for sale is searched once: the alternatives are of the same search.
    """
    start_seconds, slow_start_seconds = _start_seconds(work, provider)
    past = past_runs(work.recipe.reference)
    want = _want(work, start_seconds)
    chooser = Chooser(
        recipe=work.recipe,
        parameters=work.parameters,
        past=past,
        provider=provider,
        home=home,
        needs_room=not work.is_dry_run,
    )

    def quoted(choice: Choice) -> Quoted:
        offer = choice.offer
        expected = estimate(
            work.recipe,
            work.parameters,
            images=work.images,
            gpu=offer.gpu,
            rate_per_hour=offer.price_per_hour,
            start_seconds=start_seconds,
            slow_start_seconds=slow_start_seconds,
            past=past,
        )
        # A free machine needs no confirmation: whichever is free by then will do, unless one was asked for.
        is_confirmed = offer.price_per_hour > 0 or work.offer is not None
        return Quoted(
            quote=replace(_quote(expected, choice, want), offer=offer.id if is_confirmed and offer.id else None),
            notes=(*choice.notes, *expected.notes),
            offer=offer,
            is_offered=choice.is_offered,
        )

    if work.card is not None:
        found = quoted(chooser.asked_about(work.card, want))
        if found.is_offered:
            _require_provider_credit([found], provider)
        return found
    try:
        choices = chooser.choices(want, offer_id=work.offer)
    except NoOfferFits as none:
        if work.needs_offer:
            raise
        return replace(quoted(chooser.unoffered(want)), no_offer=f"{none}; what helps: {none.hint}")
    found = quoted(choices.chosen)
    shown = [found if one is choices.chosen else quoted(one) for one in choices.shown]
    affordable = _require_provider_credit([found, *(one for one in shown if one is not found)], provider)
    if found.quote.price_per_hour <= 0:
        return found
    return replace(found, alternatives=tuple(one for one in shown if one in affordable))


def _start_seconds(work: Work, provider: Provider) -> tuple[float, float]:
    """The paid time besides the training, usual and slow: boot, dataset, release.

    A money limit that follows from the quote must not stop a training because its machine was slow to start.
    """
    if provider.name == "loopback":
        return 0.0, 0.0
    usual = _START_SECONDS + work.dataset_bytes / _BYTES_PER_SECOND
    return usual, _SLOW_START_SECONDS + work.dataset_bytes / _SLOW_BYTES_PER_SECOND


def _want(work: Work, start_seconds: float) -> Requirements:
    needs = work.recipe.needs
    hours = scaling(work.recipe, work.parameters, images=work.images, start_seconds=start_seconds)
    return Requirements(
        gpus=needs.gpus,
        vram_gib=needs.vram_gib,
        disk_gib=needs.disk_gib,
        cuda=needs.cuda,
        max_price_per_hour=work.max_price,
        hours=hours.on_reference,
        fixed_hours=hours.fixed,
        traffic_gib=work.dataset_bytes / 1024**3 + needs.disk_gib * _TRAFFIC_SHARE_OF_DISK,
        avoided_machines=frozenset(work.avoided_machines),
    )


def _quote(expected: Estimate, found: Choice, want: Requirements) -> Quote:
    offer, memory = found.offer, found.memory
    return Quote(
        hours_low=expected.low_hours,
        hours_expected=expected.expected_hours,
        hours_high=expected.high_hours,
        price_per_hour=offer.price_per_hour,
        cost_low=expected.low_cost,
        cost_expected=expected.expected_cost,
        cost_high=expected.high_cost,
        gpu=offer.gpu,
        past_runs=expected.past_runs,
        reference_hours=want.hours,
        fixed_hours=want.fixed_hours,
        disk_gib=want.disk_gib,
        traffic_gib=want.traffic_gib,
        memory_low_gib=None if memory is None else memory.low_gib,
        memory_expected_gib=None if memory is None else memory.expected_gib,
        memory_high_gib=None if memory is None else memory.high_gib,
        memory_runs=0 if memory is None else memory.past_runs,
        memory_basis=found.memory_basis,
        gpu_gib=offer.vram_gib or None,
        min_vram_gib=found.min_vram_gib,
    )


def _require_provider_credit(quoted: Sequence[Quoted], provider: Provider) -> list[Quoted]:
    """Those that the account's credit suffices for; asks for the credit once.

    Raise now if the key is refused or the account too empty for the first, instead of letting the job fail in a minute.
    """
    if not quoted[0].quote.cost_high:
        return list(quoted)
    credit = asyncio.run(known_credit(provider))
    problem = credit_shortage(quoted[0].quote, credit, provider=provider.name)
    if problem is not None:
        raise AccessRefused(problem, hint="add credit at https://cloud.vast.ai/billing/, or train fewer --steps")
    return [one for one in quoted if credit_shortage(one.quote, credit, provider=provider.name) is None]
