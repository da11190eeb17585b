"""The fake provider goes wrong in each way it can be told to, as often as it was told, and then no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from stationmaster.errors import AccessRefused, AnswerLost, NoCapacity, ProviderBusy, ProviderError, ProviderFault
from stationmaster.model import MachineStatus, Requirements
from stationmaster.providers.fake import FakeProvider, Trouble
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import label, offer

WANT = Requirements()
Call = Callable[[FakeProvider], Awaitable[object]]

CALLS: dict[str, Call] = {
    "offers": lambda fake: fake.offers(WANT),
    "create": lambda fake: fake.create(offer(), label=label(), want=WANT),
    "listing": lambda fake: fake.listing(),
    "describe": lambda fake: fake.describe("m1"),
    "destroy": lambda fake: fake.destroy("m1"),
}
REFUSALS = [
    (Trouble.REFUSE_CREATE, "create", NoCapacity),
    (Trouble.FAIL_LISTING, "listing", ProviderFault),
    (Trouble.FAIL_DESCRIBE, "describe", ProviderFault),
    (Trouble.FAIL_DESTROY, "destroy", ProviderFault),
    *((Trouble.BUSY, name, ProviderBusy) for name in sorted(CALLS)),
    *((Trouble.REFUSE_KEY, name, AccessRefused) for name in sorted(CALLS)),
]


@pytest.mark.parametrize(("trouble", "call", "error"), REFUSALS)
@asynchronous
async def test_a_refusal_changes_nothing_and_is_used_up(
    trouble: Trouble, call: str, error: type[ProviderError]
) -> None:
    fake = FakeProvider()
    await CALLS["create"](fake)
    before = dict(fake.machines)
    fake.will(trouble, 2)
    for _ in range(2):
        with pytest.raises(error):
            await CALLS[call](fake)
    assert fake.machines == before
    await CALLS[call](fake)


@asynchronous
async def test_a_lost_answer_leaves_a_machine_and_a_lost_request_none() -> None:
    fake = FakeProvider()
    fake.will(Trouble.LOSE_CREATE_REQUEST)
    with pytest.raises(AnswerLost):
        await CALLS["create"](fake)
    assert fake.machines == {}
    fake.will(Trouble.LOSE_CREATE_ANSWER)
    with pytest.raises(AnswerLost):
        await CALLS["create"](fake)
    assert [machine.label for machine in (await fake.listing()).machines] == [label()]


@asynchronous
async def test_a_machine_that_never_gets_ready_stays_in_creation() -> None:
    fake = FakeProvider()
    fake.will(Trouble.NEVER_READY)
    await CALLS["create"](fake)
    (machine,) = (await fake.listing()).machines
    assert (machine.status, machine.accesses) == (MachineStatus.CREATING, ())


@asynchronous
async def test_a_destroy_that_is_ignored_says_yes_and_does_nothing() -> None:
    fake = FakeProvider()
    await CALLS["create"](fake)
    fake.will(Trouble.IGNORE_DESTROY)
    await fake.destroy("m1")
    assert await fake.describe("m1") is not None
    await fake.destroy("m1")
    assert await fake.describe("m1") is None


@asynchronous
async def test_a_partial_list_does_not_hide_that_it_is_one() -> None:
    fake = FakeProvider()
    await CALLS["create"](fake)
    fake.will(Trouble.LIST_PARTIALLY)
    assert not (await fake.listing()).complete
    assert (await fake.listing()).complete


@asynchronous
async def test_another_account_s_list_says_whose_it_is() -> None:
    fake = FakeProvider()
    await CALLS["create"](fake)
    fake.will(Trouble.LIST_EMPTY)
    listing = await fake.listing()
    assert (listing.machines, listing.complete) == ((), True)
    assert listing.account != fake.account


@asynchronous
async def test_a_full_provider_refuses_and_an_empty_market_offers_nothing() -> None:
    fake = FakeProvider(capacity=1)
    await CALLS["create"](fake)
    with pytest.raises(NoCapacity):
        await CALLS["create"](fake)
    fake.will(Trouble.NO_OFFERS)
    assert await fake.offers(WANT) == []
    assert len(await fake.offers(WANT)) == 1


@asynchronous
async def test_a_machine_can_vanish_and_the_most_that_lived_at_once_is_remembered() -> None:
    fake = FakeProvider()
    for _ in range(2):
        await CALLS["create"](fake)
    fake.vanish("m1")
    assert await fake.describe("m1") is None
    assert fake.most_alive[label()] == 2


@asynchronous
async def test_a_stopped_machine_stays_listed_and_can_be_started() -> None:
    fake = FakeProvider()
    await CALLS["create"](fake)
    await fake.stop("m1")
    assert (await fake.listing()).machines[0].status is MachineStatus.STOPPED
    fake.will(Trouble.QUEUE_START)
    assert not await fake.start("m1")
    assert await fake.start("m1")
    assert (await fake.listing()).machines[0].status is MachineStatus.RUNNING
