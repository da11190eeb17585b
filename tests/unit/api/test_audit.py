"""What is recorded of requests, and what never is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.api.app import Service
from stationmaster.errors import StoreError
from stationmaster.station.audit import AuditEntry
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from tests.support.servers.api_server import serving
from tests.support.servers.gate_bench import GateBench, gate_bench

CHANGE = "/api/users/me/inbox/read"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GateBench]:
    with gate_bench(tmp_path_factory.mktemp("home")) as bench:
        yield bench


def newest(bench: GateBench) -> AuditEntry:
    return bench.station.audit.entries(limit=1)[0]


def count(bench: GateBench) -> int:
    return len(bench.station.audit.entries(limit=500))


def test_a_change_is_recorded_with_its_route_and_subject_before_it_is_answered(bench: GateBench) -> None:
    with bench.client(bench.token) as client:
        client.post(CHANGE, json={"up_to": 0})
    entry = newest(bench)
    assert (entry.user, entry.action, entry.subject, entry.status, entry.address) == (
        "me",
        "POST /api/users/{user}/inbox/read",
        "me",
        204,
        "127.0.0.1",
    )
    assert entry.token is not None


def test_a_change_that_fails_or_is_forbidden_is_recorded_too(bench: GateBench) -> None:
    with bench.client(bench.token) as client:
        client.post(CHANGE, json={"up_to": "x"})
        assert newest(bench).status == 422
        client.post("/api/nowhere/secret-path", json={})
        assert (newest(bench).action, newest(bench).subject, newest(bench).status) == (
            "POST unknown address",
            None,
            404,
        )
    with bench.client(bench.reading_token) as client:
        client.post("/api/inbox/test-operators", json={"text": "x"})
        assert newest(bench).status == 403


def test_reading_is_not_recorded(bench: GateBench) -> None:
    before = count(bench)
    with bench.client(bench.token) as client:
        client.get("/api/server")
        client.get("/")
    with bench.client() as client:
        assert client.get("/api/server").status_code == 401
        assert client.post(CHANGE, json={"up_to": 0}).status_code == 401
    assert count(bench) == before


def test_a_refused_sign_in_is_recorded_without_its_secret(bench: GateBench) -> None:
    with bench.client("sm_guessed") as client:
        client.get("/api/server")
    assert (newest(bench).user, newest(bench).status) == (None, 401)
    with bench.client() as client:
        client.post("/api/session", json={"code": "guessed-code"})
    assert (newest(bench).action, newest(bench).status) == ("POST /api/session", 401)
    recorded = repr(bench.station.audit.entries(limit=500))
    assert "guessed" not in recorded
    assert bench.token not in recorded


def test_strange_names_in_a_path_are_recorded_readably(bench: GateBench) -> None:
    with bench.client(bench.token) as client:
        client.post("/api/users/a%00%0Ab%ED%A0%80" + "c" * 300 + "/inbox/read", json={"up_to": 0})
    subject = newest(bench).subject
    assert subject is not None
    assert subject.isprintable()
    assert len(subject) == 200


def test_strangers_cannot_fill_the_store(tmp_path: Path) -> None:
    with gate_bench(tmp_path) as bench, bench.client(Origin="https://evil.example") as client:
        for _ in range(80):
            assert client.get("/api/server").status_code == 403
        assert 50 <= count(bench) <= 65


class Forgetful(LocalDoorkeeper):
    def record(self, entry: AuditEntry) -> None:
        raise StoreError("the disk is full")


def test_a_store_that_cannot_record_does_not_fail_the_request(
    bench: GateBench, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(station=bench.station, doorkeeper=Forgetful(bench.station.store))
    with serving(service) as url, bench.client(bench.token) as client:
        assert client.post(f"{url}{CHANGE}", json={"up_to": 0}).status_code == 204
    assert "audit.not_recorded" in capsys.readouterr().out


def test_old_entries_sessions_and_codes_are_cleaned_up(tmp_path: Path) -> None:
    with gate_bench(tmp_path) as bench, bench.client(bench.token) as client:
        client.post(CHANGE, json={"up_to": 0})
        client.post("/api/session", json={"code": bench.code()})
        access = bench.station.store.access
        assert access.remove_old(audit_seconds=3600.0) == 0
        access.add_code("0" * 64, "me", seconds=-1.0)
        assert access.remove_old(audit_seconds=-1.0) >= 2
        assert count(bench) == 0
        assert client.get("/api/session").status_code == 401  # a token is no session
