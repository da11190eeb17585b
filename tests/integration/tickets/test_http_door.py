"""The HTTP door: a machine that was given a ticket asks home for the address itself, and only once."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, cast

import httpx
import pytest
from fastapi.testclient import TestClient

from stationmaster.api.app import Service, build_app
from stationmaster.control.destinations.job_bucket import JobBucket, bucket_key, send_from_machine
from stationmaster.control.destinations.upload_tickets import UploadTickets
from stationmaster.errors import DeliveryError
from stationmaster.model import OutputFile
from stationmaster.remote.host import Host
from stationmaster.station.base import Station
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.store.store import Store
from stationmaster.store.tickets import TicketState
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import job
from tests.support.servers.api_server import serving

JOB = job("cats", attempt=1)
PATH = "output/model.safetensors"
TOKEN = "a-planted-token"


def service_of(store: Store, tickets: UploadTickets | None) -> Service:
    """The service without an installation: machines need only the store."""
    return Service(station=cast(Station, store), doorkeeper=LocalDoorkeeper(store), tickets=tickets)


class _Unasked(UploadTickets):
    """Tickets that no request may reach."""

    def __init__(self) -> None: ...

    def admit(self, ticket_id: str, token: str) -> NoReturn:
        raise AssertionError("the door let something through")


def a_model(host: Host, content: bytes) -> OutputFile:
    Path(host.path(PATH)).write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    return OutputFile(path=PATH, kind="checkpoint", size=len(content), mtime=0.0, sha256=sha256)


def a_ticket(job_bucket: JobBucket, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    return job_bucket.tickets.open(
        job_id=JOB.id, attempt=1, path=PATH, size=len(content), sha256=sha256, key="jobs/cats/model", token=TOKEN
    ).id


@asynchronous
async def test_a_machine_uploads_through_the_door(open_job_bucket: Any, old_host: Host, store: Store) -> None:
    host = old_host
    content = os.urandom(100_000)
    with serving(service_of(store, open_job_bucket().tickets)) as url:
        job_bucket = open_job_bucket(public_url=url)
        await send_from_machine(a_model(host, content), JOB, host, job_bucket)
    assert b"".join(job_bucket.bucket.read(bucket_key(JOB, PATH))) == content
    assert [ticket.state for ticket in store.tickets.of_job(JOB.id)] == [TicketState.DONE]


@asynchronous
async def test_a_large_file_goes_through_the_door_in_parts(open_job_bucket: Any, host: Host, store: Store) -> None:
    content = os.urandom(11 << 20)
    with serving(service_of(store, open_job_bucket(largest_put_bytes=6 << 20).tickets)) as url:
        job_bucket = open_job_bucket(public_url=url, largest_put_bytes=6 << 20)
        await send_from_machine(a_model(host, content), JOB, host, job_bucket)
    assert b"".join(job_bucket.bucket.read(bucket_key(JOB, PATH))) == content


@asynchronous
async def test_a_door_that_nobody_answers_costs_nothing_but_a_moment(open_job_bucket: Any, host: Host) -> None:
    job_bucket = open_job_bucket(public_url="http://127.0.0.1:9")
    await send_from_machine(a_model(host, b"weights"), JOB, host, job_bucket)
    assert b"".join(job_bucket.bucket.read(bucket_key(JOB, PATH))) == b"weights"


@asynchronous
async def test_other_bytes_do_not_get_through(open_job_bucket: Any, host: Host, store: Store) -> None:
    file = a_model(host, b"a" * 1000)
    Path(host.path(PATH)).write_bytes(b"b" * 1000)
    with serving(service_of(store, open_job_bucket().tickets)) as url:
        job_bucket = open_job_bucket(public_url=url)
        with pytest.raises(DeliveryError):
            await send_from_machine(file, JOB, host, job_bucket)
    assert list(job_bucket.bucket.listed()) == []


def test_a_ticket_is_good_once_and_only_with_its_token(open_job_bucket: Any, store: Store) -> None:
    job_bucket, content = open_job_bucket(), b"weights"
    ticket = a_ticket(job_bucket, content)
    mine, other = ({"Authorization": f"Bearer {token}"} for token in (TOKEN, "another"))
    with (
        serving(service_of(store, job_bucket.tickets)) as url,
        httpx.Client(base_url=url, timeout=150, verify=False) as client,
    ):
        assert client.post(f"/api/uploads/{ticket}").status_code == 401
        assert client.post(f"/api/uploads/{ticket}", headers=other).status_code == 404
        assert client.post("/api/uploads/made-up", headers=mine).status_code == 404
        assert client.post(f"/api/uploads/{ticket}/done", headers=mine).status_code == 409  # nothing was signed
        used = client.post(f"/api/uploads/{ticket}", headers=mine)
        again = client.post(f"/api/uploads/{ticket}", headers=mine)
        assert (used.status_code, again.status_code) == (200, 409)
        assert used.headers["cache-control"] == "no-store"
        (request,) = used.json()["requests"]
        del request["headers"]["Content-Length"]
        assert httpx.put(request["url"], content=content, headers=request["headers"], verify=False).status_code == 200
        assert client.post(f"/api/uploads/{ticket}/done", headers=other).status_code == 404
        assert client.post(f"/api/uploads/{ticket}/done", headers=mine).json()["state"] == "DONE"
    assert b"".join(job_bucket.bucket.read("jobs/cats/model")) == content
    assert TOKEN not in str(store.tickets.of_job(JOB.id))


def test_of_many_that_come_at_once_one_gets_the_address(open_job_bucket: Any, store: Store) -> None:
    job_bucket = open_job_bucket()
    ticket = a_ticket(job_bucket, b"weights")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with serving(service_of(store, job_bucket.tickets)) as url, ThreadPoolExecutor(6) as pool:
        use = [pool.submit(httpx.post, f"{url}/api/uploads/{ticket}", headers=headers, timeout=150) for _ in range(6)]
        statuses = sorted(one.result().status_code for one in use)
    assert statuses == [200, 409, 409, 409, 409, 409]


@pytest.mark.parametrize("ticket", ["%00", "made-up", "%F0%9F%9A%82", "A" * 32, "a" * 33, "0123%0A"])
@pytest.mark.parametrize("verb", ["", "/done"])
def test_an_id_that_no_ticket_can_have_is_turned_away_before_anybody_is_asked(
    store: Store, ticket: str, verb: str
) -> None:
    client = TestClient(build_app(service_of(store, _Unasked())))
    answer = client.post(f"/api/uploads/{ticket}{verb}", headers={"Authorization": "Bearer any"})
    assert answer.status_code == 404


@pytest.mark.parametrize("shown", [None, "", "Bearer", "Bearer ", "Bearer  ", "Basic YTpi", "a-planted-token"])
def test_who_shows_no_token_is_asked_for_one(store: Store, shown: str | None) -> None:
    headers = {} if shown is None else {"Authorization": shown}
    answer = TestClient(build_app(service_of(store, _Unasked()))).post("/api/uploads/any", headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "Bearer TOKEN" in answer.json()["hint"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_balancer_may_ask_for_the_head_alone(store: Store, path: str) -> None:
    client = TestClient(build_app(service_of(store, None)))
    head, whole = client.head(path), client.get(path)
    assert (head.status_code, head.headers["content-length"]) == (200, whole.headers["content-length"])
    store.database.close()
    assert client.head(path).status_code == client.get(path).status_code


def test_health_needs_no_store_and_readiness_does(store: Store, tmp_path: Path) -> None:
    with serving(service_of(store, None)) as url:
        assert httpx.get(f"{url}/healthz", verify=False).json()["ok"] is True
        assert httpx.get(f"{url}/readyz", verify=False).json() == {"ready": True, "uploads": False}
        assert httpx.post(f"{url}/api/uploads/any", verify=False).status_code == 404  # no public address, no door
        store.database.close()
        for file in tmp_path.glob("store.db*"):
            file.unlink()
        (tmp_path / "store.db").mkdir()
        assert httpx.get(f"{url}/healthz", verify=False).status_code == 200
        assert httpx.get(f"{url}/readyz", verify=False).status_code == 503
        (tmp_path / "store.db").rmdir()
