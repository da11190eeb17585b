"""What Vast.ai is known to do to its customers, each by name, against the simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.errors import AccessRefused, AnswerLost, NoCapacity, ProviderBusy, ProviderFault
from stationmaster.model import Machine, MachineStatus, Requirements
from stationmaster.money import from_dollars
from stationmaster.providers.vastai.provider import VastProvider
from stationmaster.providers.vastai.retries import Retries
from tests.support.asynchronous_tests import asynchronous
from tests.support.vast.vast_client_bench import simulated_provider

WANT = Requirements(gpus=1, vram_gib=24.0, disk_gib=10.0, hours=2.0)


async def seen(provider: VastProvider, provider_id: str, holds: Callable[[Machine], bool]) -> Machine:
    """The machine once something holds of it."""
    async with asyncio.timeout(20):
        while True:
            machine = await provider.describe(provider_id)
            assert machine is not None
            if holds(machine):
                return machine
            await asyncio.sleep(0.02)


async def running(provider: VastProvider, provider_id: str) -> Machine:
    return await seen(provider, provider_id, lambda machine: machine.status is MachineStatus.RUNNING)


@pytest.mark.parametrize("status", [None, 502, 504])
@asynchronous
async def test_a_lost_create_answer_is_told_as_lost_and_its_machine_is_found_by_the_label(
    account: Any, status: int | None
) -> None:
    offer = await account.offer()
    if status is None:
        account.customer.arm("lost_answer", operation="create")
    else:
        account.customer.arm("server_error", operation="create", status=status, after_effect=True)
    with pytest.raises(AnswerLost):
        await account.provider.create(offer, label="sm-ab12cd34-lost-1", want=WANT)
    (found,) = (await account.provider.listing()).machines
    assert found.label == "sm-ab12cd34-lost-1"
    assert len(account.customer.listed()) == 1, "a create is never sent twice"


@asynchronous
async def test_a_create_that_takes_too_long_is_lost_and_not_refused(account: Any) -> None:
    impatient = simulated_provider(account.url, key=account.customer.key, timeout_seconds=0.3)
    offer = await account.offer()
    account.customer.arm("slow_answer", operation="create", seconds=3.0)
    with pytest.raises(AnswerLost):
        await impatient.create(offer, label="sm-ab12cd34-slow-1", want=WANT)
    assert [machine.label for machine in (await account.provider.listing()).machines] == ["sm-ab12cd34-slow-1"]


@asynchronous
async def test_an_error_with_a_contract_is_a_rental_that_has_failed_and_can_be_destroyed(account: Any) -> None:
    offer = await account.offer()
    account.customer.arm("error_with_contract", operation="create")
    provider_id = await account.provider.create(offer, label="sm-ab12cd34-fault-1", want=WANT)
    (listed,) = (await account.provider.listing()).machines
    assert (listed.provider_id, listed.status) == (provider_id, MachineStatus.FAILED)
    assert listed.message == "bid is below the current minimum"
    # Another process, which did not see the error, comes to the same view by the three states.
    other = simulated_provider(account.url, key=account.customer.key)
    elsewhere = await other.describe(provider_id)
    assert elsewhere is not None
    assert elsewhere.status is MachineStatus.FAILED
    await account.provider.destroy(provider_id)
    assert await account.provider.describe(provider_id) is None


@pytest.mark.parametrize("status", [404, 410, 400])
@asynchronous
async def test_an_offer_that_is_gone_rents_nothing(account: Any, status: int) -> None:
    offer = await account.offer()
    account.customer.arm("offer_gone", operation="create", status=status)
    with pytest.raises(NoCapacity):
        await account.provider.create(offer, label="sm-ab12cd34-gone-1", want=WANT)
    assert account.customer.listed() == set()


@pytest.mark.parametrize("status", [200, 410])
@asynchronous
async def test_the_dead_list_is_a_fault_and_never_an_empty_account(account: Any, status: int) -> None:
    await account.rent()
    account.customer.arm("deprecated_list", status=status)
    with pytest.raises(ProviderFault):
        await account.provider.listing()
    assert len((await account.provider.listing()).machines) == 1


@asynchronous
async def test_a_short_page_is_not_complete(account: Any) -> None:
    await account.rent("sm-ab12cd34-a-1")
    await account.rent("sm-ab12cd34-b-1")
    account.customer.arm("short_page")
    listing = await account.provider.listing()
    assert (len(listing.machines), listing.complete) == (1, False)
    listing = await account.provider.listing()
    assert (len(listing.machines), listing.complete) == (2, True)


@asynchronous
async def test_every_page_is_followed(account: Any) -> None:
    cheapest = Requirements(gpus=0, disk_gib=1.0)
    offers = await account.provider.offers(cheapest)
    count = 27  # the service shows 25 at a time
    for number, offer in enumerate(offers[:count]):
        await account.provider.create(offer, label=f"sm-ab12cd34-page-{number}", want=cheapest)
    listing = await account.provider.listing()
    assert (len(listing.machines), listing.complete) == (count, True)


@asynchronous
async def test_a_lying_destroy_is_seen_by_who_looks(account: Any) -> None:
    provider_id = await account.rent()
    account.customer.arm("lying_destroy")
    await account.provider.destroy(provider_id)
    assert await account.provider.describe(provider_id) is not None
    await account.provider.destroy(provider_id)
    assert await account.provider.describe(provider_id) is None
    assert (await account.provider.listing()).machines == ()


@asynchronous
async def test_a_key_of_another_account_shows_and_proves_nothing(account: Any) -> None:
    provider_id = await account.rent()
    account.customer.http.post("/simulator/accounts", json={"name": "x", "api_key": "another-key", "credit": 5})
    stranger = simulated_provider(account.url, key="another-key")
    ours, theirs = await account.provider.listing(), await stranger.listing()
    assert theirs.machines == ()
    assert theirs.account != ours.account
    assert await stranger.describe(provider_id) is None  # true for that account, which is why the account is told
    await stranger.destroy(provider_id)
    assert account.truth(provider_id)["exists"]


@asynchronous
async def test_a_second_installation_on_the_same_account_is_listed_with_its_own_label(account: Any) -> None:
    await account.rent("sm-ab12cd34-job-1")
    await account.rent("sm-zz99zz99-job-1")
    account.customer.rent()  # and one that somebody rented by hand
    labels = {machine.label for machine in (await account.provider.listing()).machines}
    assert labels == {"sm-ab12cd34-job-1", "sm-zz99zz99-job-1", ""}


Call = Callable[[VastProvider, str], Awaitable[object]]
REPEATED: dict[str, tuple[str, Call]] = {
    "list": ("list", lambda provider, _: provider.listing()),
    "read": ("read", lambda provider, machine: provider.describe(machine)),
    "destroy": ("destroy", lambda provider, machine: provider.destroy(machine)),
    "stop": ("manage", lambda provider, machine: provider.stop(machine)),
    "search": ("search", lambda provider, _: provider.offers(WANT)),
}


@pytest.mark.parametrize("shape", ["text", "detail", "common", "retry_after"])
@pytest.mark.parametrize("call", sorted(REPEATED))
@asynchronous
async def test_what_may_be_repeated_outlives_a_429_of_every_shape(account: Any, shape: str, call: str) -> None:
    provider_id = await account.rent()
    operation, act = REPEATED[call]
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    patient = simulated_provider(account.url, key=account.customer.key, retries=Retries(), sleep=wait)
    account.customer.arm("rate_limited", operation=operation, shape=shape, seconds=2.5)
    await act(patient, provider_id)
    assert len(waited) == 1
    assert waited[0] >= {"text": 0.25, "retry_after": 2.5}.get(shape, 0.25)


@pytest.mark.parametrize("shape", ["text", "detail", "common", "retry_after"])
@asynchronous
async def test_a_429_at_a_create_rents_nothing_and_says_when_to_come_back(account: Any, shape: str) -> None:
    offer = await account.offer()
    account.customer.arm("rate_limited", operation="create", shape=shape, seconds=7.0)
    with pytest.raises(ProviderBusy) as busy:
        await account.provider.create(offer, label="sm-ab12cd34-busy-1", want=WANT)
    expected = {"text": None, "detail": 4.5, "common": 4.5, "retry_after": 7.0}
    assert busy.value.retry_after_seconds == expected[shape]
    assert account.customer.listed() == set()


@asynchronous
async def test_a_spent_search_quota_is_not_knocked_at_again(account: Any) -> None:
    account.customer.arm("rate_limited", operation="search", shape="search_quota", times=9)
    before = len(account.customer.struck("rate_limited"))
    with pytest.raises(ProviderBusy) as busy:
        await account.provider.offers(WANT)
    assert busy.value.retry_after_seconds
    assert busy.value.retry_after_seconds > 3600
    assert len(account.customer.struck("rate_limited")) == before + 1


@asynchronous
async def test_a_queued_start_is_told_and_can_be_taken_back(account: Any) -> None:
    provider_id = await account.rent()
    await running(account.provider, provider_id)
    await account.provider.stop(provider_id)
    await seen(account.provider, provider_id, lambda machine: machine.status is MachineStatus.STOPPED)
    account.customer.arm("start_queued", seconds=3600.0)
    assert await account.provider.start(provider_id) is False
    await account.provider.stop(provider_id)
    account.customer.advance(7200)
    assert account.truth(provider_id)["actual_status"] == "exited"
    assert await account.provider.start(provider_id) is True
    await running(account.provider, provider_id)


@asynchronous
async def test_server_errors_on_reads_never_read_as_gone(account: Any) -> None:
    provider_id = await account.rent()
    account.customer.arm("server_error", operation="read", times=99)
    account.customer.arm("server_error", operation="list", times=99)
    with pytest.raises(ProviderBusy):
        await account.provider.describe(provider_id)
    with pytest.raises(ProviderBusy):
        await account.provider.listing()


@asynchronous
async def test_an_unreachable_service_never_reads_as_gone() -> None:
    nobody = simulated_provider("http://127.0.0.1:9", key="k", retries=Retries(attempts=1))
    with pytest.raises(ProviderBusy, match="cannot be reached") as problem:
        await nobody.describe("7")
    assert problem.value.hint


@asynchronous
async def test_a_bad_key_is_refused_with_what_to_do(account: Any) -> None:
    wrong = simulated_provider(account.url, key="wrong-key-000")
    with pytest.raises(AccessRefused) as problem:
        await wrong.listing()
    assert "wrong-key-000" not in str(problem.value)
    assert problem.value.hint
    assert "VASTAI_API_KEY" in problem.value.hint


@asynchronous
async def test_an_account_without_credit_is_refused_with_what_to_do(account: Any) -> None:
    account.customer.http.post("/simulator/accounts", json={"name": "poor", "api_key": "poor-key", "credit": 0})
    poor = simulated_provider(account.url, key="poor-key")
    assert await poor.credit() == 0
    with pytest.raises(AccessRefused, match="credit") as problem:
        await poor.create(await account.offer(), label="sm-ab12cd34-poor-1", want=WANT)
    assert problem.value.hint
    assert "billing" in problem.value.hint


@pytest.mark.parametrize(
    "message", ["Error response from daemon: OCI runtime create failed", "manifest for x:1 not found: manifest unknown"]
)
@asynchronous
async def test_a_machine_that_never_comes_up_has_failed_by_its_own_words(account: Any, message: str) -> None:
    account.customer.arm("never_ready", operation="create", message=message)
    provider_id = await account.rent()
    failed = await seen(account.provider, provider_id, lambda machine: machine.status is not MachineStatus.CREATING)
    assert (failed.status, failed.message) == (MachineStatus.FAILED, message)


@pytest.mark.parametrize("fault", ["outbid", "contract_ends"])
@asynchronous
async def test_a_machine_taken_away_is_stopped_and_its_disk_is_not_forgotten(account: Any, fault: str) -> None:
    want = replace(WANT, interruptible=True)
    provider_id = await account.rent(want=want)
    machine = await running(account.provider, provider_id)
    assert machine.interruptible
    await account.provider.listing()  # the host has reported by now
    account.customer.arm(fault, instance_id=int(provider_id))
    stopped = await seen(account.provider, provider_id, lambda now: now.status is MachineStatus.STOPPED)
    assert 0 < stopped.price_per_hour < machine.price_per_hour


@asynchronous
async def test_a_bid_is_sent_as_a_bid(account: Any) -> None:
    want = replace(WANT, interruptible=True)
    offer = await account.offer(want)
    assert offer.bid_per_hour is not None
    on_demand = await account.offer()
    assert offer.price_per_hour < on_demand.price_per_hour
    provider_id = await account.provider.create(offer, label="sm-ab12cd34-bid-1", want=want)
    machine = await running(account.provider, provider_id)
    assert machine.interruptible
    assert machine.price_per_hour == offer.price_per_hour


@asynchronous
async def test_a_host_that_vanished_is_offline_and_not_gone(account: Any) -> None:
    provider_id = await account.rent()
    await running(account.provider, provider_id)
    account.customer.arm("host_vanishes", instance_id=int(provider_id))
    await seen(account.provider, provider_id, lambda machine: machine.status is MachineStatus.OFFLINE)


@asynchronous
async def test_charges_are_the_services_own_to_the_last_micro_dollar(account: Any) -> None:
    provider_id = await account.rent()
    await running(account.provider, provider_id)
    account.customer.advance(3 * 3600)
    await account.provider.destroy(provider_id)
    now = float(account.customer.http.get("/simulator/state").json()["now"])
    charges = await account.provider.charges(since=now - 86400, until=now)
    assert {charge.kind for charge in charges} == {"gpu", "disk"}
    assert {charge.provider_id for charge in charges} == {provider_id}
    assert sum(charge.amount for charge in charges) == from_dollars(account.truth(provider_id)["cost"]["total"])
    assert await account.provider.credit() == from_dollars(50) - sum(charge.amount for charge in charges)


@asynchronous
async def test_the_account_learns_a_key_once(account: Any) -> None:
    assert await account.provider.account_keys() == ()
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFirst laptop"
    await account.provider.add_account_key(key)
    await account.provider.add_account_key(key.replace("laptop", "desk"))
    assert await account.provider.account_keys() == (key,)
    provider_id = await account.rent()
    for _ in range(2):
        await account.provider.attach_key(provider_id, key)
