"""A person's question gives up in about ten seconds; background work keeps its patience."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx
import pytest

from stationmaster.errors import ProviderBusy
from stationmaster.providers.base import Pause
from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.client import VastClient
from stationmaster.providers.vastai.retries import HURRIED, Retries
from tests.support.asynchronous_tests import asynchronous


@dataclass
class Silence:
    """A service that cannot be reached, and a clock that goes on with every wait. `hangs`: no try ends by itself."""

    hangs: bool
    first_turn_seconds: float = 0.0
    now: float = 0.0
    tries: list[float] = field(default_factory=list)
    _next_turn: float | None = None

    async def wait_for_turn(
        self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False, pause: Pause
    ) -> None:
        turn = self.now + self.first_turn_seconds if self._next_turn is None else max(self.now, self._next_turn)
        self.now, self._next_turn = turn, turn + interval_seconds

    async def note_answer(self, account: str, endpoint: str, **_times: float) -> None:
        """Of a silence nobody learns."""

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.tries.append(self.now)
        if not self.hangs:
            raise httpx.ConnectError("Connection refused")
        self.now += request.extensions["timeout"]["connect"]
        raise httpx.ConnectTimeout("")

    def client(self, retries: Retries) -> VastClient:
        calls = Calls(
            base_url="http://vast.test/api/v0",
            api_key="secret",
            account="default",
            limiter=self,
            retries=retries,
            transport=httpx.MockTransport(self.answer),
            sleep=self.sleep,
            draw=lambda: 1.0,
            stopwatch=lambda: self.now,
        )
        return VastClient(calls)


@pytest.mark.parametrize("hangs", [False, True], ids=["refused", "hanging"])
@pytest.mark.parametrize("waited", [0.0, 24.0], ids=["free", "after others' turns"])
@asynchronous
async def test_a_person_waits_ten_seconds_at_most_once_it_is_their_turn(hangs: bool, waited: float) -> None:
    silence = Silence(hangs=hangs, first_turn_seconds=waited)
    with pytest.raises(ProviderBusy, match="cannot be reached"):
        await silence.client(HURRIED).search({}, pages=5)
    assert silence.tries[0] == waited
    assert 5.0 < silence.now - waited <= 12.0


@asynchronous
async def test_background_work_tries_on() -> None:
    silence = Silence(hangs=True)
    with pytest.raises(ProviderBusy):
        await silence.client(Retries()).search({}, pages=5)
    assert len(silence.tries) == 4
    assert silence.now > 180.0
