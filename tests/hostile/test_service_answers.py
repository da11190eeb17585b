"""Services that messages, models and datasets go to or come from: their answers are bounded in size and time."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Iterator
from itertools import repeat
from pathlib import Path

import httpx
import pytest

from stationmaster.datasets.sources.bucket_dataset import BucketDataset, BucketObject
from stationmaster.datasets.sources.cache import fetch_into_cache
from stationmaster.delivery.bucket import StoredObject
from stationmaster.delivery.comfydeploy import ComfyDeploy
from stationmaster.errors import DatasetInvalid, DeliveryBusy, NotifyBusy
from stationmaster.http_answers import MIB, AnswerLimit, AnswerTooLarge, AnswerTooSlow, ask
from stationmaster.notify.http_post import json_object, post
from tests.support.asynchronous_tests import asynchronous
from tests.support.servers.odd_server import Exchange, OddServer, packed_zeros

SMALL = AnswerLimit(most_bytes=1000, seconds=60.0)
SHORT = AnswerLimit(most_bytes=MIB, seconds=0.5)


BOMB = packed_zeros(40)


def bomb(exchange: Exchange) -> None:
    exchange.answer(BOMB, Content_Encoding="gzip")


@asynchronous
async def test_a_messaging_service_cannot_fill_the_memory() -> None:
    with OddServer(bomb) as server:
        async with httpx.AsyncClient(verify=False) as client:
            with pytest.raises(NotifyBusy, match="more than 1 MiB"):
                await post(client, "the webhook", server.url, json={})


@asynchronous
async def test_a_messaging_service_cannot_crash_or_delay_us_by_what_it_answers() -> None:
    deep = b"[" * 500_000
    with OddServer(lambda exchange: exchange.answer(deep, 429, Retry_After="9" * 400)) as server:
        async with httpx.AsyncClient(verify=False) as client:
            with pytest.raises(NotifyBusy) as caught:
                await post(client, "the webhook", server.url, json={})
    assert caught.value.retry_after_seconds is None
    assert json_object(httpx.Response(200, content=deep)) == {}


@asynchronous
async def test_comfydeploy_cannot_fill_the_memory_nor_crash_us_by_nesting() -> None:
    with OddServer(bomb) as server, pytest.raises(DeliveryBusy, match="more than 16 MiB"):
        await ComfyDeploy(base_url=server.url, api_key="k", folder="loras").start("m", "https://x.test/m")
    with OddServer(lambda exchange: exchange.answer(b"[" * 500_000)) as server:
        await ComfyDeploy(base_url=server.url, api_key="k", folder="loras").start("m", "https://x.test/m")


@pytest.mark.parametrize("packed", [True, False])
@asynchronous
async def test_an_answer_with_one_byte_too_many_is_refused_and_one_that_fits_is_read(packed: bool) -> None:
    def answer(exchange: Exchange) -> None:
        size = int(exchange.request.path.removeprefix("/"))
        if packed:
            exchange.answer(gzip.compress(b"x" * size), Content_Encoding="gzip")
        else:
            exchange.answer(b"x" * size)

    with OddServer(answer) as server:
        async with httpx.AsyncClient(verify=False) as client:
            fits = await ask(client, "GET", f"{server.url}/1000", limit=SMALL)
            assert fits.content == b"x" * 1000
            with pytest.raises(AnswerTooLarge, match="more than 1000 bytes"):
                await ask(client, "GET", f"{server.url}/1001", limit=SMALL)


@asynchronous
async def test_an_answer_that_is_not_complete_in_time_is_given_up() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.head(Content_Length="10000")
        exchange.dribble(b"x" * 10_000, interval_seconds=0.02)

    with OddServer(answer) as server:
        async with httpx.AsyncClient(verify=False) as client:
            with pytest.raises(AnswerTooSlow, match=r"within 0\.5 s"):
                await ask(client, "GET", server.url, limit=SHORT)
        assert server.cut_off.wait(60)


@asynchronous
async def test_a_large_answer_that_keeps_coming_may_take_longer_than_the_time_limit() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield bytes(MIB // 4)
            await asyncio.sleep(SHORT.seconds / 2)

    transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=pieces()))
    async with httpx.AsyncClient(transport=transport) as client:
        began = time.monotonic()
        answer = await ask(client, "GET", "http://service.test", limit=SHORT)
        assert time.monotonic() - began > SHORT.seconds
    assert len(answer.content) == MIB


class EndlessBucket:
    """A service that calls itself a bucket and lists without end."""

    def listed(self, prefix: str = "") -> Iterator[BucketObject]:
        return repeat(StoredObject(key=f"{prefix}a.png", size=1, etag="0" * 32))

    def head(self, key: str) -> BucketObject | None:
        return None

    def read(self, key: str, *, offset: int = 0, etag: str | None = None) -> Iterator[bytes]:
        return repeat(b"x" * MIB)


def test_a_bucket_that_lists_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetInvalid, match="more than 500,000 files"):
        fetch_into_cache(BucketDataset(bucket=EndlessBucket(), key="cats"), "s3://b/cats", tmp_path)
