"""What a call does when Vast.ai says that it is asked too often: wait and repeat, within bounds and never blindly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import AccessRefused, ConfigInvalid, ProviderBusy
from stationmaster.model import Offer, Requirements
from stationmaster.money import from_dollars
from stationmaster.providers.vastai.client import RentOrder, VastClient
from stationmaster.providers.vastai.provider import VastProvider
from stationmaster.providers.vastai.retries import HURRIED, Retries
from tests.support.asynchronous_tests import asynchronous
from tests.support.vast.vast_client_bench import OPTIONS, said, scripted

ORDER = RentOrder(image="x", disk_gb=10.0, label="sm-abcd1234-job-1", onstart="true")
SHAPES = {
    "text": httpx.Response(429, text="API requests too frequent"),
    "detail": said({"detail": "API requests too frequent endpoint threshold=1.0"}, 429),
    "common": said({"success": False, "error": "rate_limit_exceeded", "msg": "slow down"}, 429),
}
CALLS: dict[str, Callable[[VastClient], Awaitable[Any]]] = {
    "start": lambda client: client.start(5),
    "add_account_key": lambda client: client.add_account_key("ssh-ed25519 AAAA"),
    "attach_key": lambda client: client.attach_key(5, "ssh-ed25519 AAAA"),
    "destroy": lambda client: client.destroy(5),
    "label": lambda client: client.label(5, "x"),
}


def too_often(**extra: Any) -> httpx.Response:
    return said({"success": False, "error": "rate_limit_exceeded", "msg": "slow down", **extra}, 429)


def quota() -> httpx.Response:
    document = {"success": False, "error": "search_quota_exceeded", "msg": "Daily search quota exceeded."}
    return said(document, 429, X_RateLimit_Reset="1018000")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("call", CALLS)
@asynchronous
async def test_a_rate_limit_says_that_nothing_was_done_so_the_call_is_made_again(call: str, shape: str) -> None:
    script = scripted(SHAPES[shape], SHAPES[shape], said({"success": True}))
    await CALLS[call](script.client())
    assert len(script.asked) == 3
    assert len({(asked.method, asked.url) for asked in script.asked}) == 1


@asynchronous
async def test_the_wait_that_the_service_asks_for_is_kept_and_told_to_all_who_share_the_account() -> None:
    script = scripted(too_often(retry_after=7), said({"success": True}))
    await script.client().destroy(5)
    assert script.paused == [7.0]
    assert script.slept == [], "nothing has failed"
    assert script.turns.pauses == [("destroy", 7.0)]


@asynchronous
async def test_where_the_service_names_no_time_the_documented_pause_is_kept() -> None:
    script = scripted(SHAPES["text"], said({"success": True}))
    await script.client().destroy(5)
    assert script.paused == [3.0]


@asynchronous
async def test_waiting_for_a_rate_limit_ends() -> None:
    script = scripted(*[too_often(retry_after=20)] * 9)
    with pytest.raises(ProviderBusy, match="slow down") as problem:
        await script.client().destroy(5)
    assert script.paused == [20.0] * 3
    assert problem.value.hint is not None
    assert "another program" in problem.value.hint


@asynchronous
async def test_a_create_is_not_repeated_whoever_rents_looks_for_the_label_first() -> None:
    script = scripted(too_often(retry_after=4.5))
    with pytest.raises(ProviderBusy) as problem:
        await script.client().create(7, ORDER)
    assert problem.value.retry_after_seconds == 4.5
    assert (len(script.asked), script.paused) == (1, [])
    assert script.turns.pauses == [("create", 4.5)], "the next try, of whichever job, keeps away that long"


@asynchronous
async def test_a_used_up_day_is_told_at_once_with_its_end() -> None:
    script = scripted(quota())
    with pytest.raises(ProviderBusy, match="search quota") as problem:
        await script.client(retries=HURRIED).search({})
    assert problem.value.retry_after_seconds == 18000.0
    assert problem.value.hint is not None
    assert "used up" in problem.value.hint
    assert "in 5h" in problem.value.hint
    assert (len(script.asked), script.paused, script.slept) == (1, [], [])
    assert script.turns.pauses == [], "whoever asks next is told at once, too"


@asynchronous
async def test_rate_limits_do_not_use_up_the_tries_of_a_call_that_has_only_one() -> None:
    script = scripted(SHAPES["text"], said({"success": True, "total_instances": 0, "instances": []}))
    assert (await script.client(retries=Retries(attempts=1)).instances()).complete


@given(
    st.integers(min_value=1, max_value=20),
    st.none() | st.floats(min_value=0, max_value=200),
    st.floats(min_value=0, max_value=1),
    st.floats(min_value=0, max_value=100),
    st.floats(min_value=0, max_value=10),
)
def test_no_wait_is_shorter_than_asked_or_leads_past_the_patience(
    refusals: int, asked: float | None, draw: float, waited: float, turn: float
) -> None:
    wait = HURRIED.limited_wait(refusals, asked, draw=draw, waited_seconds=waited, turn=turn)
    if wait is None:
        assert waited + max(asked or 0.0, turn, 15.0) > HURRIED.limited_seconds
    else:
        assert max(asked or 0.0, turn) <= wait <= HURRIED.limited_seconds - waited


@asynchronous
async def test_without_a_key_pair_the_market_can_be_seen_and_machines_ended_and_nothing_be_rented() -> None:
    def no_pair() -> str:
        raise ConfigInvalid("there is no SSH key at /keys/x", hint="run `stationmaster keys setup`")

    script = scripted(said({"offers": []}), said({"success": True}))
    provider = VastProvider(script.client(), options=replace(OPTIONS, public_key=no_pair))
    assert await provider.offers(Requirements()) == []
    await provider.destroy("5")
    with pytest.raises(ConfigInvalid, match="no SSH key"):
        provider.require_key()
    offer = Offer(id="77", provider="vastai", price_per_hour=from_dollars("0.40"))
    with pytest.raises(AccessRefused, match="no SSH key") as problem:
        await provider.create(offer, label="sm-abcd1234-job-1", want=Requirements())
    assert problem.value.hint == "run `stationmaster keys setup`"
    assert len(script.asked) == 2
