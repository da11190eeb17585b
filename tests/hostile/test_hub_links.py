"""The Hub's answers name other addresses: next pages, redirects, uploads. The token goes to the Hub alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from stationmaster.datasets.sources.cache import fetch_into_cache
from stationmaster.datasets.sources.hub_dataset import HubDataset
from stationmaster.delivery.hub_calls import HubCalls
from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.huggingface import HubClient
from stationmaster.errors import DatasetInvalid, DeliveryBusy, DeliveryError, DeliveryRefused
from stationmaster.http_answers import MIB, AnswerLimit
from tests.support.servers.odd_server import Exchange, OddServer, packed_zeros

TOKEN = "hf_planted_account_token"
REPOSITORY = "anna/cats"
COMMIT = "c" * 40
PICTURE = b"a picture"
T = TypeVar("T")


@dataclass
class TwoPlaces:
    """A Hub whose answers a test writes, and another host that answers everything."""

    hub: OddServer
    other: OddServer
    answers: dict[str, Callable[[Exchange], None]]
    opened: ExitStack

    def dataset(self, **options: Any) -> HubDataset:
        dataset = HubDataset(url=self.hub.url, repository=REPOSITORY, revision=None, token=TOKEN, **options)
        return self.opened.enter_context(closing(dataset))

    def asked(self, do: Callable[[HubClient], Awaitable[T]]) -> T:
        async def run() -> T:
            client = HubClient(url=self.hub.url, token=TOKEN, namespace="anna", private=False)
            try:
                return await do(client)
            finally:
                await client.close()

        return asyncio.run(run())


def listing_entry(path: str = "a.png", content: bytes = PICTURE, **changes: Any) -> dict[str, Any]:
    oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return {"type": "file", "path": path, "size": len(content), "oid": oid, **changes}


def said(document: Any, **headers: str) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.answer(json.dumps(document).encode(), **headers)


@pytest.fixture
def places() -> Iterator[TwoPlaces]:
    answers: dict[str, Callable[[Exchange], None]] = {
        f"/api/datasets/{REPOSITORY}": said({"sha": COMMIT}),
        f"/api/datasets/{REPOSITORY}/tree/{COMMIT}": said([listing_entry()]),
        f"/datasets/{REPOSITORY}/resolve/{COMMIT}/a.png": lambda exchange: exchange.answer(PICTURE),
    }

    def of_hub(exchange: Exchange) -> None:
        answers[exchange.request.path.partition("?")[0]](exchange)

    with (
        OddServer(of_hub) as hub,
        OddServer(lambda exchange: exchange.answer(PICTURE)) as other,
        ExitStack() as opened,
    ):
        yield TwoPlaces(hub=hub, other=other, answers=answers, opened=opened)


def tree_of(places: TwoPlaces, answer: Callable[[Exchange], None]) -> None:
    places.answers[f"/api/datasets/{REPOSITORY}/tree/{COMMIT}"] = answer


def test_the_next_page_of_a_list_is_never_read_from_another_host(places: TwoPlaces) -> None:
    for link in (f"{places.other.url}/steal", f"//{places.other.url.removeprefix('http://')}/steal"):
        tree_of(places, said([listing_entry()], Link=f'<{link}>; rel="next"'))
        with pytest.raises(DeliveryRefused, match="which is not the Hub"):
            places.dataset().listed()
    assert places.other.seen == []


@pytest.mark.parametrize("link", ["https://127.0.0.1/", "http://[", "ftp://x/", "http://user@elsewhere.test/"])
def test_a_link_that_is_not_the_hubs_own_is_refused(link: str, places: TwoPlaces) -> None:
    tree_of(places, said([listing_entry()], Link=f'<{link}>; rel="next"'))
    with pytest.raises(DeliveryRefused):
        places.dataset().listed()


def test_the_next_page_of_the_hub_is_read_with_the_token(places: TwoPlaces) -> None:
    def page(exchange: Exchange) -> None:
        if "cursor" in exchange.request.path:
            return said([listing_entry("b.png")])(exchange)
        link = f"<{places.hub.url}{exchange.request.path}&cursor=2>"
        return said([listing_entry()], Link=f'{link}; rel="next"')(exchange)

    tree_of(places, page)
    assert [file.path for file in places.dataset().listed()] == ["a.png", "b.png"]
    assert {request.headers["Authorization"] for request in places.hub.seen} == {f"Bearer {TOKEN}"}


def test_a_file_that_is_redirected_to_another_host_arrives_without_the_token(places: TwoPlaces, tmp_path: Path) -> None:
    where = f"/datasets/{REPOSITORY}/resolve/{COMMIT}/a.png"
    places.answers[where] = lambda exchange: exchange.answer(b"", 302, Location=f"{places.other.url}/object")
    folder = fetch_into_cache(places.dataset(), "hf://datasets/anna/cats", tmp_path)
    assert (folder / "a.png").read_bytes() == PICTURE
    assert [request.headers.get("Authorization") for request in places.other.seen] == [None]


def test_a_list_that_is_redirected_to_another_host_is_asked_for_without_the_token(places: TwoPlaces) -> None:
    tree_of(places, lambda exchange: exchange.answer(b"", 307, Location=f"{places.other.url}/tree"))
    with pytest.raises(DeliveryBusy, match="unreadable"):
        places.dataset().listed()
    assert [request.headers.get("Authorization") for request in places.other.seen] == [None]


def test_a_model_that_is_redirected_to_another_host_arrives_without_the_token(
    places: TwoPlaces, tmp_path: Path
) -> None:
    places.answers["/anna/cats/resolve/main/m"] = lambda exchange: exchange.answer(
        b"", 302, Location=f"{places.other.url}/object"
    )
    sha256 = hashlib.sha256(PICTURE).hexdigest()
    places.asked(lambda client: client.download("hf://anna/cats/m", tmp_path / "m", sha256=sha256, size=len(PICTURE)))
    assert (tmp_path / "m").read_bytes() == PICTURE
    assert [request.headers.get("Authorization") for request in places.other.seen] == [None]


def upload(places: TwoPlaces, actions: dict[str, Any]) -> Any:
    """Put one model on a Hub that wants it by these actions."""
    file = HubFile(name="m", size=len(PICTURE), sha256=hashlib.sha256(PICTURE).hexdigest(), content=PICTURE)
    api = "/api/models/anna/cats"
    objects = [{"oid": file.sha256, "size": file.size, "actions": actions}]
    places.answers |= {
        f"{api}/paths-info/main": said([]),
        f"{api}/preupload/main": said({"files": [{"path": "m", "uploadMode": "lfs"}]}),
        f"{api}/commit/main": said({}),
        "/anna/cats.git/info/lfs/objects/batch": said({"transfer": "basic", "objects": objects}),
    }
    return places.asked(lambda client: client.put("anna/cats", [file], message="Add"))


def test_an_upload_and_its_check_at_another_host_go_without_the_token(places: TwoPlaces) -> None:
    links = {"upload": {"href": f"{places.other.url}/put"}, "verify": {"href": f"{places.other.url}/verify"}}
    upload(places, links)
    assert [request.path for request in places.other.seen] == ["/put", "/verify"]
    assert [request.headers.get("Authorization") for request in places.other.seen] == [None, None]
    assert TOKEN not in str(places.other.seen)


@pytest.mark.parametrize("header", [{"Authorization": "Bearer x"}, {"cookie": "x"}, {"X": TOKEN}])
def test_an_upload_that_wants_credentials_is_refused(header: dict[str, str], places: TwoPlaces) -> None:
    with pytest.raises(DeliveryRefused):
        upload(places, {"upload": {"href": f"{places.other.url}/put", "header": header}})
    assert places.other.seen == []


def test_an_encrypted_hub_does_not_send_us_to_a_connection_that_is_not() -> None:
    async def run() -> None:
        asked: list[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            asked.append(request)
            return httpx.Response(200)

        calls = HubCalls(url="https://hub.test", token=TOKEN, transport=httpx.MockTransport(answer))
        for link in ("http://store.test/put", "http://hub.test/put", "nonsense"):
            with pytest.raises(DeliveryRefused, match="not https"):
                await calls.put(link, PICTURE, headers={})
            with pytest.raises(DeliveryRefused, match="not https"):
                await calls.ask_link("POST", link, headers={}, with_token=True)
        await calls.close()
        assert asked == []

    asyncio.run(run())


def test_a_list_without_end_is_refused(places: TwoPlaces) -> None:
    def page(exchange: Exchange) -> None:
        said([], Link=f'<{places.hub.url}{exchange.request.path}>; rel="next"')(exchange)

    tree_of(places, page)
    with pytest.raises(DatasetInvalid, match="more than"):
        places.dataset(most_pages=5).listed()
    assert len(places.hub.seen) == 1 + 5


@pytest.mark.parametrize(
    "listed",
    [
        {"a": 1},
        7,
        [None],
        [{"type": "file"}],
        [listing_entry(size=-5)],
        [listing_entry(size="much")],
        [listing_entry(lfs=[1])],
    ],
    ids=str,
)
def test_a_list_that_makes_no_sense_is_no_list(listed: Any, places: TwoPlaces) -> None:
    tree_of(places, said(listed))
    with pytest.raises(DeliveryBusy, match="unreadable"):
        places.dataset().listed()


@pytest.mark.parametrize("body", [packed_zeros(50), b"[" * 500_000], ids=["packed", "nested"])
def test_a_list_is_never_unpacked_past_its_limit_nor_read_too_deeply(body: bytes, places: TwoPlaces) -> None:
    encoding = {"Content_Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    tree_of(places, lambda exchange: exchange.answer(body, **encoding))
    with pytest.raises(DeliveryBusy, match=r"more than 1 MiB|unreadable"):
        places.dataset(answer=AnswerLimit(most_bytes=MIB, seconds=60.0)).listed()


def test_a_list_that_comes_byte_by_byte_ends_at_the_time_limit(places: TwoPlaces) -> None:
    def dribble(exchange: Exchange) -> None:
        exchange.dribble(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000, interval_seconds=0.05)

    tree_of(places, dribble)
    with pytest.raises(DeliveryBusy, match="within 1 s"):
        places.dataset(answer=AnswerLimit(most_bytes=MIB, seconds=1.0)).listed()
    assert places.hub.cut_off.wait(60)


def test_a_file_that_comes_byte_by_byte_is_given_up(places: TwoPlaces) -> None:
    def dribble(exchange: Exchange) -> None:
        exchange.head(Content_Length="100000")
        exchange.dribble(b" " * 100_000, interval_seconds=0.02)

    places.answers[f"/datasets/{REPOSITORY}/resolve/{COMMIT}/a.png"] = dribble
    dataset = places.dataset(slow_seconds=0.2)
    (file,) = dataset.listed()
    with pytest.raises(DeliveryBusy, match="too slowly"):
        list(dataset.read(file, offset=0))


def test_no_more_of_a_file_is_kept_than_was_listed(places: TwoPlaces, tmp_path: Path) -> None:
    stopped = threading.Event()

    def flood(exchange: Exchange) -> None:
        exchange.head(Content_Length=str(10**12))
        try:
            while True:
                exchange.send(b"x" * MIB)
        finally:
            stopped.set()

    places.answers[f"/datasets/{REPOSITORY}/resolve/{COMMIT}/a.png"] = flood
    dataset = places.dataset()
    with pytest.raises(DatasetInvalid, match="more than the 9 bytes"):
        fetch_into_cache(dataset, "hf://datasets/anna/cats", tmp_path)
    dataset.close()
    assert stopped.wait(60)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 1000


def test_no_more_of_a_model_is_kept_than_it_has(places: TwoPlaces, tmp_path: Path) -> None:
    places.answers["/anna/cats/resolve/main/m"] = lambda exchange: exchange.answer(b"x" * 5 * MIB)
    with pytest.raises(DeliveryError, match="more than the 9 bytes"):
        places.asked(lambda client: client.download("hf://anna/cats/m", tmp_path / "m", sha256="0" * 64, size=9))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 1000


def test_an_answer_of_the_hub_is_never_unpacked_past_its_limit(places: TwoPlaces) -> None:
    bomb = packed_zeros(50)
    places.answers["/api/models/anna/cats"] = lambda exchange: exchange.answer(bomb, Content_Encoding="gzip")
    with pytest.raises(DeliveryBusy, match="more than 8 MiB"):
        places.asked(lambda client: client.is_public("anna/cats"))
