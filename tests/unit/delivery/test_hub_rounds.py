"""Rounds of sending to the Hub when addresses end by its own word, without a server: time is an argument."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from stationmaster.delivery.hub_calls import HubCalls
from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.hub_upload import SourcedFile, put_files
from stationmaster.delivery.signed_requests import Piece, SendResult
from stationmaster.errors import DeliveryBusy

FILE = HubFile(name="m.safetensors", size=400, sha256="a" * 64)


class Hub:
    """Answers as the Hub does, with parts of 100 bytes whose addresses work for 60 seconds."""

    def __init__(self) -> None:
        self.batches = 0
        self.completed: list[dict[str, Any]] = []
        self.commits = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/paths-info/main"):
            return httpx.Response(200, json=[])
        if path.endswith("/preupload/main"):
            return httpx.Response(200, json={"files": [{"path": FILE.name, "uploadMode": "lfs"}]})
        if path.endswith("/batch"):
            self.batches += 1
            links = {str(n): f"https://store/{n}?uploadId=u&batch={self.batches}" for n in range(1, 5)}
            upload = {"href": "https://hub/complete", "header": {"chunk_size": "100", **links}, "expires_in": 60}
            return httpx.Response(200, json={"objects": [{"oid": FILE.sha256, "actions": {"upload": upload}}]})
        if path == "/complete":
            assert "authorization" not in request.headers
            self.completed.append(dict(httpx.Response(200, content=request.content).json()))
            return httpx.Response(200, json={})
        self.commits += 1
        return httpx.Response(200, json={})


class Slow:
    """Sends `at_once` parts in each call, each of which takes half a minute of the clock that it moves."""

    def __init__(self, at_once: int) -> None:
        self.now = 1000.0
        self.at_once = at_once
        self.given: list[float | None] = []
        self.links: list[str] = []

    async def first_bytes(self, count: int) -> bytes:
        return b"x"

    async def send(self, pieces: Sequence[Piece], *, begin_within_seconds: float | None) -> SendResult:
        self.given.append(begin_within_seconds)
        sent = pieces[: self.at_once]
        self.now += 30.0 * len(sent)
        self.links += [piece.request.url for piece in sent]
        return SendResult(etags=tuple(f'"{piece.offset}"' for piece in sent))


def put(hub: Hub, source: Slow) -> None:
    async def conversation() -> None:
        calls = HubCalls(url="https://hub", token="hf_x", transport=httpx.MockTransport(hub))
        sourced = [SourcedFile(file=FILE, source=source)]
        try:
            await put_files(calls, "anna/cats", sourced, message="m", clock=lambda: source.now)
        finally:
            await calls.close()

    asyncio.run(conversation())


def test_addresses_whose_time_is_over_are_asked_for_again_and_earlier_parts_count() -> None:
    hub, source = Hub(), Slow(1)
    put(hub, source)
    assert source.given == [60.0, 30.0, 60.0, 30.0]
    assert [link[-1] for link in source.links] == ["1", "1", "2", "2"]
    assert (hub.batches, hub.commits) == (2, 1)
    assert [part["etag"] for part in hub.completed[0]["parts"]] == ['"0"', '"100"', '"200"', '"300"']


def test_a_source_that_sends_nothing_is_not_asked_for_ever() -> None:
    hub, source = Hub(), Slow(0)
    with pytest.raises(DeliveryBusy, match="no part"):
        put(hub, source)
    assert len(source.given) == 2
    assert hub.commits == 0
