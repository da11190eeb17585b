"""Calls that share a store keep the service's pauses so well that it never has to ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.client import VastClient
from stationmaster.simulator.harness import simulator_thread
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.vast.simulated_vast import API_KEY, quick_settings


@dataclass
class SlowAtFirst(httpx.AsyncBaseTransport):
    """A connection whose first call takes long to get there, as the first of every process does."""

    seconds: float
    statuses: list[int] = field(default_factory=list)
    _transport: httpx.AsyncHTTPTransport = field(default_factory=httpx.AsyncHTTPTransport)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self.statuses:
            await asyncio.sleep(self.seconds)
        answer = await self._transport.handle_async_request(request)
        self.statuses.append(answer.status_code)
        return answer

    async def aclose(self) -> None:
        await self._transport.aclose()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    settings = quick_settings(tmp_path / "simulator", backend="paper", rate_limit_scale=0.5)
    with simulator_thread(settings) as url:
        yield url


@asynchronous
async def test_neither_one_caller_nor_two_are_ever_refused(url: str, tmp_path: Path) -> None:
    ways = [SlowAtFirst(seconds=0.2), SlowAtFirst(seconds=0.1)]
    with ExitStack() as stores:
        clients = []
        for way in ways:
            store = stores.enter_context(closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))))
            calls = Calls(
                base_url=url,
                api_key=API_KEY,
                account="default",
                limiter=store.limiter,
                intervals={"list": 0.5},
                transport=way,
            )
            clients.append(VastClient(calls))
        await asyncio.gather(*(client.instances() for client in clients for _ in range(3)))
    assert [way.statuses for way in ways] == [[200] * 3, [200] * 3]
