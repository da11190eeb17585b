"""The list of machines as the monitor reads it: every page, and nothing lost to one bad entry."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from stationmaster.errors import ProviderBusy, ProviderFault
from stationmaster.providers.base import Pause
from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.retries import Retries
from stationmaster.providers.vastai.telemetry import read_telemetry
from tests.support.asynchronous_tests import asynchronous


class NoLimit:
    def __init__(self) -> None:
        self.turns = 0

    async def wait_for_turn(
        self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False, pause: Pause
    ) -> None:
        self.turns += not continues

    async def note_answer(self, account: str, endpoint: str, **_times: float) -> None:
        """Nobody waits, so nobody has to know."""


async def at_once(_seconds: float) -> None:
    """The service's wish to be asked later is known to be heeded; here only the answer counts."""


def calls_to(pages: dict[str | None, Any], limiter: NoLimit) -> Calls:
    """The client before a service that has these pages, by their tokens."""

    def answer(request: httpx.Request) -> httpx.Response:
        page = pages[request.url.params.get("after_token")]
        return page if isinstance(page, httpx.Response) else httpx.Response(200, json=page)

    return Calls(
        base_url="https://console.vast.ai/api/v0",
        api_key="secret",
        account="default",
        limiter=limiter,
        retries=Retries(attempts=1),
        transport=httpx.MockTransport(answer),
        pause=at_once,
    )


def page(*instances: Any, after: str | None = None) -> dict[str, Any]:
    return {"success": True, "instances": list(instances), "total_instances": 3, "next_token": after}


@asynchronous
async def test_every_page_is_read_within_one_turn() -> None:
    limiter = NoLimit()
    pages = {None: page({"id": 1}, {"id": 2}, after="more"), "more": page({"id": 3})}
    telemetry = await read_telemetry(calls_to(pages, limiter))
    assert [row.id for row in telemetry.rows] == [1, 2, 3]
    assert limiter.turns == 1


@asynchronous
async def test_an_entry_that_cannot_be_read_is_named_and_the_others_are_kept() -> None:
    good = {"id": 1, "gpu_util": "busy", "mem_usage": 8.0, "mem_limit": 32.0}
    telemetry = await read_telemetry(calls_to({None: page(good, {"id": "seven"}, {"label": "x"})}, NoLimit()))
    assert [(row.id, row.gpu_util, row.memory_percent) for row in telemetry.rows] == [(1, None, 25.0)]
    assert ["instance seven skipped" in words or "instance ? skipped" in words for words in telemetry.unreadable] == [
        True,
        True,
    ]


@pytest.mark.parametrize("limit", [0, None, -1, "none"])
@asynchronous
async def test_memory_without_a_limit_is_unknown(limit: Any) -> None:
    row = {"id": 1, "mem_usage": 8.0, "mem_limit": limit}
    telemetry = await read_telemetry(calls_to({None: page(row)}, NoLimit()))
    assert telemetry.rows[0].memory_percent is None


@asynchronous
async def test_an_answer_that_is_no_list_is_a_fault_and_never_empty() -> None:
    with pytest.raises(ProviderFault):
        await read_telemetry(calls_to({None: httpx.Response(200, content=b"<html>")}, NoLimit()))
    with pytest.raises(ProviderFault):
        await read_telemetry(calls_to({None: {"instances": "none"}}, NoLimit()))
    busy = httpx.Response(429, content=json.dumps({"detail": "API requests too frequent"}))
    with pytest.raises(ProviderBusy):
        await read_telemetry(calls_to({None: busy}, NoLimit()))
