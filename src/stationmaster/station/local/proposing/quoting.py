"""The quote of a training: from the recipe's time model, past runs like it, and the current offers."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stationmaster.control.states.provisioning.market import credit_problem
from stationmaster.errors import AccessRefused, DiskFull, UserError
from stationmaster.estimate import Estimate, estimate, scaling
from stationmaster.model import FinishedRun, MachineWish, Offer, Quote, Requirements
from stationmaster.money import MicroDollars
from stationmaster.providers.base import Provider
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import Recipe

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
    machine: MachineWish = field(default_factory=MachineWish)


def quote_work(work: Work, provider: Provider, *, past_runs: PastRuns, home: Path) -> tuple[Quote, tuple[str, ...]]:
    """Hours and cost on the best offer, and the assumptions. Raises UserError if no offer fits."""
    start_seconds, slow_start_seconds = _start_seconds(work, provider)
    want = _want(work, start_seconds)
    offer = _best_offer(work.recipe, want, provider, home)
    expected = estimate(
        work.recipe,
        work.parameters,
        images=work.images,
        gpu=offer.gpu,
        rate_per_hour=offer.price_per_hour,
        start_seconds=start_seconds,
        slow_start_seconds=slow_start_seconds,
        past=past_runs(work.recipe.reference),
    )
    quote = _quote(expected, offer, want)
    _require_provider_credit(quote, provider)
    return quote, expected.notes


def _start_seconds(work: Work, provider: Provider) -> tuple[float, float]:
    """The paid time besides the training, usual and slow: boot, dataset, release.

    A money limit that follows from the quote must not stop a training because its machine was slow to start.
    """
    if provider.name == "loopback":
        return 0.0, 0.0
    usual = _START_SECONDS + work.dataset_bytes / _BYTES_PER_SECOND
    return usual, _SLOW_START_SECONDS + work.dataset_bytes / _SLOW_BYTES_PER_SECOND


def _want(work: Work, start_seconds: float) -> Requirements:
    needs, wish = work.recipe.needs, work.machine
    hours = scaling(work.recipe, work.parameters, images=work.images, start_seconds=start_seconds)
    return Requirements(
        gpus=needs.gpus,
        vram_gib=max(needs.vram_gib, wish.vram_gib or 0.0),
        disk_gib=max(needs.disk_gib, wish.disk_gib or 0.0),
        cuda=needs.cuda,
        max_price_per_hour=work.max_price,
        hours=hours.on_reference,
        fixed_hours=hours.fixed,
        traffic_gib=work.dataset_bytes / 1024**3 + needs.disk_gib * _TRAFFIC_SHARE_OF_DISK,
        avoided_machines=frozenset(wish.avoided_machines),
    )


def _best_offer(recipe: Recipe, want: Requirements, provider: Provider, home: Path) -> Offer:
    offers = asyncio.run(provider.offers(want))
    if not offers and provider.name == "loopback":
        _require_room(home, want.disk_gib)
    if not offers:
        raise UserError(
            f"no offer of {provider.name} fits {recipe.reference}",
            hint=f"it needs {want.gpus} GPU with {want.vram_gib:g} GiB and {want.disk_gib:g} GiB of disk; raise the "
            "price cap (--max-price, VASTAI_MAX_BID_PER_HOUR), allow other GPUs (VASTAI_PREFERRED_GPUS), or wait for "
            "the market to change; `stationmaster offers` shows why offers were left out",
        )
    return offers[0]


def _require_room(home: Path, needed_gib: float) -> None:
    free_gib = shutil.disk_usage(home).free / 1024**3
    if free_gib < needed_gib:
        raise DiskFull(
            f"{home} has {free_gib:.2f} GiB of free disk, the training needs {needed_gib:g} GiB",
            hint="free some disk space, or set STATIONMASTER_HOME to a folder on a larger disk",
        )


def _quote(expected: Estimate, offer: Offer, want: Requirements) -> Quote:
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
    )


def _require_provider_credit(quote: Quote, provider: Provider) -> None:
    """Raise now if the key is refused or the account is empty, instead of letting the job fail in a minute."""
    problem = asyncio.run(credit_problem(quote, provider))
    if problem is not None:
        raise AccessRefused(problem, hint="add credit at https://cloud.vast.ai/billing/, or train fewer --steps")
