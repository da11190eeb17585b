"""A provider, or someone who answers in its place, sends without end, byte by byte, or far more than it packed."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from stationmaster.errors import AnswerLost, ProviderBusy, ProviderError, ProviderFault
from stationmaster.http_answers import MIB
from stationmaster.providers.vastai.answer_limits import LOG_BYTES, MOST_BYTES, MOST_PAGES, MOST_ROWS
from stationmaster.providers.vastai.calls import INTERVALS, Calls
from stationmaster.providers.vastai.client import RentOrder, VastClient
from stationmaster.providers.vastai.retries import Retries
from tests.support.asynchronous_tests import asynchronous
from tests.support.servers.odd_server import Exchange, OddServer, packed_zeros
from tests.support.vast.vast_client_bench import SECRET, Turns, instance_row, said, scripted

ORDER = RentOrder(image="image", disk_gb=8.0, label="sm-a-b-1", onstart="true")
SHORT_SECONDS, LONG_SECONDS = 1.0, 600.0  # a test of a limit in bytes never meets the one in seconds, nor vice versa
CALLS: dict[str, Callable[[VastClient], Awaitable[Any]]] = {
    "search": lambda client: client.search({}),
    "list": lambda client: client.instances(),
    "read": lambda client: client.instance(7),
    "destroy": lambda client: client.destroy(7),
    "create": lambda client: client.create(7, ORDER),
    "logs": lambda client: client.log(7),
    "user": lambda client: client.user(),
    "charges": lambda client: client.charges(since=0.0, until=1.0),
    "keys": lambda client: client.account_keys(),
}
CHANGING = ("destroy", "create")


def client_of(server: OddServer, *, seconds: float = LONG_SECONDS) -> VastClient:
    calls = Calls(
        base_url=server.url,
        api_key=SECRET,
        account="default",
        limiter=Turns(),
        retries=Retries(attempts=1),
        timeout_seconds=seconds,
    )
    return VastClient(calls)


def problem_of(call: str) -> type[ProviderError]:
    """Whether the service did it is unknown if it could change something; otherwise nothing was changed."""
    return AnswerLost if call in CHANGING else ProviderBusy


def test_every_kind_of_call_has_a_limit_on_its_answer() -> None:
    assert MOST_BYTES.keys() == INTERVALS.keys()
    assert max(*MOST_BYTES.values(), LOG_BYTES) <= 16 * MIB


@pytest.mark.parametrize("call", CALLS)
@asynchronous
async def test_a_packed_answer_is_not_unpacked_past_its_limit(call: str) -> None:
    bomb = packed_zeros(200)

    def answer(exchange: Exchange) -> None:
        exchange.answer(bomb, Content_Encoding="gzip", Content_Type="application/json")

    with OddServer(answer) as server:
        tracemalloc.start()
        try:
            with pytest.raises(problem_of(call), match="more than"):
                await CALLS[call](client_of(server))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 4 * MOST_BYTES[call] + 4 * MIB


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "deflate", "zstd", "x" * 1000])
@asynchronous
async def test_an_answer_packed_in_a_way_that_was_not_asked_for_is_refused(encoding: str) -> None:
    with (
        OddServer(lambda exchange: exchange.answer(b"{}", Content_Encoding=encoding)) as server,
        pytest.raises(ProviderBusy, match="not asked for"),
    ):
        await client_of(server).user()


@asynchronous
async def test_a_packed_answer_within_its_limit_is_read() -> None:
    packed = gzip.compress(json.dumps({"id": 7, "credit": 5}).encode())
    with OddServer(lambda exchange: exchange.answer(packed, Content_Encoding="gzip")) as server:
        assert (await client_of(server).user()).id == 7
    assert server.seen[0].headers["Accept-Encoding"] == "gzip"


@asynchronous
async def test_an_endless_answer_is_cut() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.head(Content_Length=str(10**12))
        while True:
            exchange.send(b" " * MIB)

    with OddServer(answer) as server:
        with pytest.raises(ProviderBusy, match="more than 1 MiB"):
            await client_of(server).user()
        assert server.cut_off.wait(60)


@pytest.mark.parametrize("call", ["list", "create", "destroy"])
@asynchronous
async def test_an_answer_that_comes_byte_by_byte_ends_at_the_time_limit(call: str) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.head(Content_Length="100000")
        exchange.dribble(b" " * 100000, interval_seconds=0.05)

    with OddServer(answer) as server:
        with pytest.raises(problem_of(call), match="within 1 s"):
            await CALLS[call](client_of(server, seconds=SHORT_SECONDS))
        assert server.cut_off.wait(60)


@asynchronous
async def test_headers_that_come_byte_by_byte_end_at_the_time_limit() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.dribble(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100000, interval_seconds=0.05)

    with OddServer(answer) as server:
        with pytest.raises(ProviderBusy, match="within 1 s"):
            await client_of(server, seconds=SHORT_SECONDS).user()
        assert server.cut_off.wait(60)


@asynchronous
async def test_a_log_is_read_without_the_key_and_up_to_its_limit() -> None:
    """The log is at a URL that the service names, and the machine writes what is in it."""

    def storage(exchange: Exchange) -> None:
        exchange.answer(packed_zeros(20), Content_Encoding="gzip")

    def service(exchange: Exchange) -> None:
        if exchange.request.method == "PUT":
            exchange.answer(json.dumps({"success": True, "result_url": f"{server.url}/a.log"}).encode())
        else:
            storage(exchange)

    with OddServer(service) as server, pytest.raises(ProviderBusy, match="more than 16 MiB"):
        await client_of(server).log(7)
    assert [request.headers.get("Authorization") for request in server.seen] == [f"Bearer {SECRET}", None]


@asynchronous
async def test_a_log_that_never_comes_is_given_up_at_the_time_limit() -> None:
    def service(exchange: Exchange) -> None:
        if exchange.request.method == "PUT":
            exchange.answer(json.dumps({"success": True, "result_url": f"{server.url}/a.log"}).encode())
        else:
            exchange.dribble(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", interval_seconds=0.01)

    with OddServer(service) as server, pytest.raises(ProviderBusy, match="in time"):
        await client_of(server, seconds=SHORT_SECONDS).log(7, attempts=1_000_000, interval_seconds=0.0)


@pytest.mark.parametrize("url", ["http://elsewhere.test/a.log", "https://[", "file:///etc/passwd", "", "https://\0"])
@asynchronous
async def test_a_log_is_not_read_from_an_unsafe_url(url: str) -> None:
    with pytest.raises(ProviderFault, match="URL"):
        await scripted(said({"success": True, "result_url": url})).client().log(7)


@pytest.mark.parametrize("call", sorted(CALLS.keys() - {"destroy"}))  # only a later look shows whether it was destroyed
@asynchronous
async def test_deep_nesting_is_an_unreadable_answer_and_no_crash(call: str) -> None:
    deep = httpx.Response(200, content=b"[" * 500_000)
    with pytest.raises(ProviderError) as caught:
        await CALLS[call](scripted(deep).client())
    assert isinstance(caught.value, AnswerLost) == (call == "create")


@asynchronous
async def test_a_list_of_machines_without_end_is_incomplete_and_keeps_those_that_were_read() -> None:
    def page(number: int) -> httpx.Response:
        rows = [instance_row(id=number)]
        return said({"instances": rows, "total_instances": MOST_PAGES, "next_token": f"page-{number}"})

    script = scripted(*(page(number) for number in range(1, MOST_PAGES + 2)))
    found = await script.client().instances()
    assert (len(found.rows), found.complete) == (MOST_PAGES, False)


@asynchronous
async def test_a_page_with_too_many_machines_ends_the_list_as_incomplete() -> None:
    rows = [{"id": number} for number in range(1, MOST_ROWS + 1)]
    script = scripted(said({"instances": rows, "total_instances": MOST_ROWS, "next_token": "more"}))
    found = await script.client().instances()
    assert (len(found.rows), found.complete) == (MOST_ROWS, False)


@pytest.mark.parametrize("call", ["list", "search", "charges", "keys"])
@asynchronous
async def test_a_page_with_more_rows_than_a_page_can_have_is_not_read(call: str) -> None:
    """Hundreds of thousands of tiny rows fit into the bytes of an answer; reading them would hold up all jobs."""
    rows = [{"id": 1}] * (MOST_ROWS + 1)
    document = {"list": {"instances": rows}, "search": {"offers": rows}, "charges": {"results": rows}, "keys": rows}
    with pytest.raises(ProviderFault, match="rows on one page"):
        await CALLS[call](scripted(said(document[call])).client())


@asynchronous
async def test_a_bill_without_end_is_no_bill() -> None:
    row = {"start": 1.0, "end": 2.0, "source": "instance-7", "amount": 1.0}
    pages = [said({"results": [row], "next_token": f"page-{number}"}) for number in range(MOST_PAGES + 1)]
    with pytest.raises(ProviderFault, match="no end"):
        await scripted(*pages).client().charges(since=0.0, until=1.0)


@asynchronous
async def test_a_pause_that_the_provider_asks_for_is_at_most_a_day() -> None:
    body = {"success": False, "error": "rate_limit_exceeded", "msg": f"threshold={'9' * 400}"}
    client = scripted(said(body, 429, retry_after="9" * 11)).client()
    with pytest.raises(ProviderBusy) as caught:
        await client.create(7, replace(ORDER, disk_gb=9.0))
    assert caught.value.retry_after_seconds == 86400.0
