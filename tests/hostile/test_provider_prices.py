"""Prices and other numbers of a provider that cannot be true are refused; a machine of ours is never lost by one."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from stationmaster.control.machine.adoption import adopted
from stationmaster.errors import ProviderFault
from stationmaster.model import Requirements
from stationmaster.money import ZERO, MicroDollars, from_dollars
from stationmaster.offers import why_none
from stationmaster.settings.machines import LoopbackSettings, OwnHostSettings
from tests.support.asynchronous_tests import asynchronous
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.jobs.spine_values import job, listing, machine, offer, rental, spec
from tests.support.servers.odd_server import OddServer
from tests.support.vast.vast_client_bench import instance_row, offer_row, said, scripted

WANT = Requirements(gpus=1, vram_gib=24.0, disk_gib=40.0, hours=4.0)
HUGE = int("9" * 4000)
IMPOSSIBLE = [-3.50, "-3.50", -0.000001, 1e12, "1e400", HUGE, True, False, "free", [], {}, ["0.3"], {"usd": 0.3}]
NO_NUMBERS = [math.nan, math.inf, -math.inf]  # Python's JSON can spell them


def sent(document: Any) -> httpx.Response:
    """As JSON with NaN and Infinity, which httpx refuses to write."""
    return httpx.Response(200, content=json.dumps(document).encode())


@pytest.mark.parametrize("price", [*IMPOSSIBLE, *NO_NUMBERS, None, 0, "0"], ids=lambda value: repr(value)[:20])
@asynchronous
async def test_an_offer_with_an_impossible_or_missing_price_is_left_out_and_counted(price: Any) -> None:
    offers = [offer_row(id=1, dph_total=price), offer_row(id=2)]
    ranking = await scripted(sent({"offers": offers})).provider().ranking(WANT)
    assert [one.offer.id for one in ranking.chosen] == ["2"]
    assert ranking.invalid == 1


@pytest.mark.parametrize("field", ["min_bid", "inet_down_cost", "inet_up_cost"])
@pytest.mark.parametrize("price", IMPOSSIBLE, ids=lambda value: repr(value)[:20])
@asynchronous
async def test_an_offer_with_an_impossible_bid_or_traffic_price_is_left_out(field: str, price: Any) -> None:
    offers = [offer_row(id=1, **{field: price}), offer_row(id=2, **{field: None})]
    wanted = replace(WANT, interruptible=True, traffic_gib=30.0)
    ranking = await scripted(sent({"offers": offers})).provider().ranking(wanted)
    assert [one.offer.id for one in ranking.chosen] == ["2"]


@asynchronous
async def test_an_offer_without_a_price_field_is_left_out() -> None:
    without = offer_row(id=1)
    del without["dph_total"]
    ranking = await scripted(said({"offers": [without, offer_row(id=2)]})).provider().ranking(WANT)
    assert [one.offer.id for one in ranking.chosen] == ["2"]


@asynchronous
async def test_a_market_without_a_possible_price_is_a_fault_and_no_empty_market() -> None:
    with pytest.raises(ProviderFault, match=r"none of Vast\.ai's offers is valid"):
        await scripted(said({"offers": [offer_row(dph_total=-3.5)]})).provider().ranking(WANT)


@asynchronous
async def test_the_reasons_for_no_offer_count_those_without_a_valid_price() -> None:
    offers = [offer_row(id=1, dph_total=-3.5), offer_row(id=2, gpu_ram=8000)]
    ranking = await scripted(said({"offers": offers})).provider().ranking(WANT)
    assert "1 × without a valid price" in why_none(ranking).reasons


def test_the_list_of_offers_tells_how_many_had_no_valid_price(tmp_path: Path) -> None:
    offers = [offer_row(id=1, dph_total=-3.5), offer_row(id=2), offer_row(id=3, dph_total=None)]
    market = json.dumps({"offers": offers}).encode()
    with OddServer(lambda exchange: exchange.answer(market)) as server:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "STATIONMASTER_HOME": str(tmp_path / "home"),
            "VASTAI_API_KEY": "k" * 20,
            "VASTAI_API_BASE_URL": server.url,
            "STATIONMASTER_VASTAI__CALL_SPACING": "0",
        }
        shown = stationmaster("offers", "--provider", "vastai", environ=environ).stdout
        found = answer_of("offers", "--provider", "vastai", "--json", environ=environ)
    assert "left out: 2 × without a valid price" in shown
    assert "-$" not in shown
    assert ([offer["id"] for offer in found["offers"]], found["invalid"]) == (["2"], 2)


@pytest.mark.parametrize(
    "change",
    [
        {"num_gpus": -1},
        {"num_gpus": 10**9},
        {"num_gpus": True},
        {"num_gpus": 1.5},
        {"id": 0},
        {"id": -1},
        {"id": True},
        {"id": 2**64},
    ],
    ids=str,
)
@asynchronous
async def test_an_offer_that_is_no_machine_is_left_out(change: dict[str, Any]) -> None:
    offers = [{**offer_row(id=1), **change}, offer_row(id=2)]
    ranking = await scripted(said({"offers": offers})).provider().ranking(WANT)
    assert [one.offer.id for one in ranking.chosen] == ["2"]


@pytest.mark.parametrize("field", ["reliability", "gpu_ram", "disk_space", "duration", "cuda_max_good"])
@pytest.mark.parametrize("value", [-1, 1e300, HUGE, True, "much", *NO_NUMBERS], ids=lambda value: repr(value)[:20])
@asynchronous
async def test_an_impossible_size_or_share_counts_as_unknown(field: str, value: Any) -> None:
    script = scripted(sent({"offers": [offer_row(id=1, reliability2=None, **{field: value})]}))
    (row,) = (await script.client().search({})).rows
    assert getattr(row, field) is None


@pytest.mark.parametrize("price", [*IMPOSSIBLE, *NO_NUMBERS, None], ids=lambda value: repr(value)[:20])
@asynchronous
async def test_a_machine_with_an_impossible_price_is_still_listed_and_described(price: Any) -> None:
    odd = {"dph_total": price, "storage_total_cost": price, "instance": {"totalHour": price}, "start_date": price}
    row = instance_row(**odd, actual_status="exited")
    page = {"instances": [row], "total_instances": 1, "next_token": None}
    script = scripted(said({"id": 1}), sent(page), sent({"instances": row}), said({"success": True}))
    provider = script.provider()
    listing = await provider.listing()
    assert ([one.provider_id for one in listing.machines], listing.complete) == (["7835610"], True)
    machine = await provider.describe("7835610")
    assert machine is not None
    assert (machine.price_per_hour, machine.created_at) == (0, 0.0)
    await provider.destroy("7835610")
    assert script.asked[-1].method == "DELETE"


@pytest.mark.parametrize("odd_id", [0, -5, True, "7; DROP", 2**70, None, 1.5, [7]], ids=str)
@asynchronous
async def test_a_listed_machine_without_a_possible_id_makes_the_list_unreadable(odd_id: Any) -> None:
    """It bills, and could not be destroyed: the list must never pass as one that was read."""
    page = {"instances": [instance_row(), {**instance_row(), "id": odd_id}], "total_instances": 1}
    with pytest.raises(ProviderFault, match="not a machine"):
        await scripted(said({"id": 1}), said(page)).provider().listing()


@pytest.mark.parametrize("amount", [-0.01, 1e12, HUGE, True, None, "much", *NO_NUMBERS], ids=lambda v: repr(v)[:20])
@asynchronous
async def test_a_bill_with_an_impossible_amount_is_not_believed(amount: Any) -> None:
    row = {"start": 1.0, "end": 2.0, "source": "instance-7", "amount": amount}
    with pytest.raises(ProviderFault, match="not a charge"):
        await scripted(sent({"results": [row], "total": 1})).provider().charges(since=0.0, until=9.0)


@asynchronous
async def test_an_impossible_item_of_a_bill_leaves_the_amount_of_its_row() -> None:
    items = [{"type": "gpu", "amount": -5.0}, {"type": "disk", "amount": 7.0}]
    row = {"start": 1.0, "end": 2.0, "source": "instance-7", "amount": 2.0, "items": items}
    (charge,) = await scripted(said({"results": [row], "total": 1})).provider().charges(since=0.0, until=9.0)
    assert (charge.kind, charge.amount) == ("gpu", from_dollars(2))


@pytest.mark.parametrize("credit", [None, "much", True, 1e18, *NO_NUMBERS], ids=str)
@asynchronous
async def test_unknown_credit_is_not_zero(credit: Any) -> None:
    with pytest.raises(ProviderFault, match="credit"):
        await scripted(sent({"id": 1, "credit": credit})).provider().credit()


@asynchronous
async def test_an_account_may_owe_money() -> None:
    assert await scripted(said({"id": 1, "credit": -2.5})).provider().credit() == from_dollars("-2.5")


@pytest.mark.parametrize("price", ["-0.01", "nan", "1e30"])
def test_a_price_of_your_own_machines_cannot_be_negative_or_absurd(price: str) -> None:
    for section, others in ((LoopbackSettings, {}), (OwnHostSettings, {"address": "gpu-box"})):
        with pytest.raises(ValidationError, match="price_per_hour"):
            section.model_validate({**others, "price_per_hour": price})


def test_a_machine_without_a_price_is_limited_by_the_price_that_was_agreed() -> None:
    """$0.72 buys two hours at the offer's $0.36; without a price the limit on spending would never come."""
    limited = job(spec=spec(max_spend=MicroDollars(720_000)))
    unpriced = machine(price_per_hour=ZERO)
    written = adopted(limited, rental(offer=offer()), [unpriced], listing(unpriced), now=20.0)
    assert written.job is not None
    assert written.job.deadline_at == 10.0 + 7200.0
    assert [line.rate_per_hour for line in written.costs] == [360_000]
