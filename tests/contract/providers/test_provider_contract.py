"""The promise that every provider keeps, held against those that need no account; with --live against Vast.ai."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import ProviderError
from stationmaster.model import Requirements
from stationmaster.money import MicroDollars
from stationmaster.providers.base import CanRelabel, ExplainsNoOffer, Provider
from stationmaster.providers.no_offer import why_no_offer
from tests.support.machines.provider_benches import CONTRACT_PREFIX, Bench, ours

WANT = Requirements(disk_gib=0.001)


def patient(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine; a live machine may take many minutes to run, which its own bench bounds."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    marked: Callable[..., None] = pytest.mark.timeout(1800)(run)
    return marked


def label(attempt: int = 1, *, folder: Path | None = None) -> str:
    """Unique on this computer: loopback finds processes by it."""
    return f"{CONTRACT_PREFIX}{abs(hash(folder)) % 10**8:08d}-{attempt}"


async def rented(provider: Provider, name: str) -> str:
    offer = (await provider.offers(WANT))[0]
    return await provider.create(offer, label=name, want=WANT)


@patient
async def test_an_offer_says_where_it_is_from_and_what_it_costs(provider: Provider) -> None:
    offers = await provider.offers(WANT)
    assert offers
    for offer in offers:
        assert offer.id
        assert offer.provider == provider.name
        assert offer.price_per_hour > 0


@patient
async def test_nothing_dearer_than_wanted_is_offered(provider: Provider) -> None:
    prices = sorted(offer.price_per_hour for offer in await provider.offers(WANT))
    dear = Requirements(disk_gib=0.001, max_price_per_hour=MicroDollars(prices[0] - 1))
    assert await provider.offers(dear) == []
    fair = Requirements(disk_gib=0.001, max_price_per_hour=prices[0])
    assert {offer.price_per_hour for offer in await provider.offers(fair)} == {prices[0]}


@patient
async def test_that_nothing_is_offered_has_a_reason_and_a_remedy(provider: Provider) -> None:
    prices = sorted(offer.price_per_hour for offer in await provider.offers(WANT))
    dear = Requirements(disk_gib=0.001, max_price_per_hour=MicroDollars(prices[0] - 1))
    none = await why_no_offer(provider, dear)
    assert "per hour" in none.why
    assert none.remedies
    if isinstance(provider, ExplainsNoOffer):
        assert "--max-price" in none.what_helps


@patient
async def test_an_account_without_machines_of_ours_has_a_complete_list_and_a_name(provider: Provider) -> None:
    listing = await provider.listing()
    assert (ours(listing.machines), listing.complete) == ([], True)
    assert listing.account


@patient
async def test_a_machine_carries_its_label_in_the_list_and_alone(held: Bench, tmp_path: Path) -> None:
    name = label(folder=tmp_path)
    (offer, *_) = await held.provider.offers(WANT)
    provider_id = await held.provider.create(offer, label=name, want=WANT)
    alone = await held.running(provider_id)
    (listed,) = ours((await held.provider.listing()).machines)
    assert (listed.provider_id, listed.label) == (provider_id, name)
    assert listed == alone
    assert listed.accesses
    assert listed.price_per_hour == offer.price_per_hour
    await held.provider.destroy(provider_id)


@patient
async def test_machines_are_told_apart(provider: Provider, tmp_path: Path) -> None:
    first, second = [await rented(provider, label(attempt, folder=tmp_path)) for attempt in (1, 2)]
    assert {each.provider_id for each in ours((await provider.listing()).machines)} == {first, second}
    await provider.destroy(first)
    assert [each.provider_id for each in ours((await provider.listing()).machines)] == [second]
    assert await provider.describe(first) is None
    assert await provider.describe(second) is not None
    await provider.destroy(second)


@patient
async def test_later_machines_are_newer(provider: Provider, tmp_path: Path) -> None:
    for attempt in (1, 2):
        await rented(provider, label(attempt, folder=tmp_path))
    machines = {each.label: each for each in ours((await provider.listing()).machines)}
    assert machines[label(1, folder=tmp_path)].created_at < machines[label(2, folder=tmp_path)].created_at


@patient
async def test_a_destroyed_machine_is_nowhere_and_destroying_it_again_is_quiet(
    provider: Provider, tmp_path: Path
) -> None:
    provider_id = await rented(provider, label(folder=tmp_path))
    for _ in range(2):
        await provider.destroy(provider_id)
        assert ours((await provider.listing()).machines) == []
        assert await provider.describe(provider_id) is None


@patient
async def test_a_machine_that_gets_another_label_is_found_by_that_alone(provider: Provider, tmp_path: Path) -> None:
    if not isinstance(provider, CanRelabel):
        return
    provider_id = await rented(provider, label(1, folder=tmp_path))
    for _ in range(2):  # repeating it changes nothing
        await provider.relabel(provider_id, label(2, folder=tmp_path))
        found = [(each.provider_id, each.label) for each in ours((await provider.listing()).machines)]
        assert found == [(provider_id, label(2, folder=tmp_path))]
    with pytest.raises(ProviderError):
        await provider.relabel("4294967295", label(3, folder=tmp_path))
    await provider.destroy(provider_id)


@patient
async def test_what_never_was_is_not_described_and_destroying_it_harms_nothing(
    provider: Provider, tmp_path: Path
) -> None:
    provider_id = await rented(provider, label(folder=tmp_path))
    for unknown in ("nobody", "", ".", "..", "../machines", "a/b", "/", "4294967295"):
        assert await provider.describe(unknown) is None, unknown
        await provider.destroy(unknown)
        assert tmp_path.exists(), unknown
    assert [each.provider_id for each in ours((await provider.listing()).machines)] == [provider_id]
    await provider.destroy(provider_id)


def test_a_provider_keeps_every_method_of_the_promise(provider: Provider) -> None:
    for name, member in inspect.getmembers(Provider, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.iscoroutinefunction(getattr(provider, name)) == inspect.iscoroutinefunction(member), name
    assert provider.name
    assert provider.create_limit_seconds >= 0


def test_errors_of_providers_never_read_as_gone() -> None:
    """Whoever catches ProviderError has caught every way of not knowing."""
    from stationmaster import errors

    for kind in (errors.ProviderBusy, errors.ProviderFault, errors.AccessRefused, errors.AnswerLost, errors.NoCapacity):
        assert issubclass(kind, ProviderError)
        assert not issubclass(kind, errors.NotFound)
