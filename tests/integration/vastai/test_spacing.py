"""Calls that share a store keep the service's pauses so well that it never has to ask for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.client import VastClient
from stationmaster.simulator.harness import simulator_thread
from stationmaster.store.engine import Database
from stationmaster.store.limiter import TurnLimiter
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.vast.simulated_vast import API_KEY, quick_settings

INTERVAL_SECONDS = 0.5


class TimedTurns(TurnLimiter):
    """A limiter that notes how long each call took, from its turn to its answer."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._begun: list[float] = []
        self.took: list[float] = []

    def take_turn(self, *args: Any, **kwargs: Any) -> float:
        asked_at = time.monotonic()
        wait = super().take_turn(*args, **kwargs)
        if wait <= 0:
            self._begun.append(asked_at)
        return wait

    async def note_answer(self, *args: Any, **kwargs: Any) -> None:
        await super().note_answer(*args, **kwargs)
        self.took.append(time.monotonic() - self._begun.pop(0))


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
    """Unless a call takes longer than the pause: then the next one's turn comes while it is under way."""
    ways = [SlowAtFirst(seconds=0.2), SlowAtFirst(seconds=0.1)]
    with ExitStack() as stores:
        clients, limiters = [], []
        for way in ways:
            store = stores.enter_context(closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))))
            limiters.append(TimedTurns(store.database))
            calls = Calls(
                base_url=url,
                api_key=API_KEY,
                account="default",
                limiter=limiters[-1],
                intervals={"list": INTERVAL_SECONDS},
                transport=way,
            )
            clients.append(VastClient(calls))
        await asyncio.gather(*(client.instances() for client in clients for _ in range(3)))
    answers = [[status for status in way.statuses if status != httpx.codes.TOO_MANY_REQUESTS] for way in ways]
    assert answers == [[200] * 3, [200] * 3]
    slowest = max(seconds for limiter in limiters for seconds in limiter.took)
    assert slowest > INTERVAL_SECONDS or all(len(way.statuses) == 3 for way in ways), (slowest, ways)
