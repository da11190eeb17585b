"""Who makes a request: tokens, cookies, CSRF tokens, and the limit on failed sign-ins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from stationmaster.api.gate.policy import EVERYONE, GatePolicy
from stationmaster.station.tokens import NewToken
from tests.support.servers.gate_bench import GateBench, gate_bench

CHANGE = "/api/users/me/inbox/read"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GateBench]:
    policy = GatePolicy(failed_sign_ins_per_minute=1000)
    with gate_bench(tmp_path_factory.mktemp("home"), gate=policy) as bench:
        yield bench


def test_a_token_says_who_asks(bench: GateBench) -> None:
    with bench.client(bench.token) as client:
        assert client.get("/api/server").json()["caller"]["user"] == "me"


@pytest.mark.parametrize("header", ["Bearer sm_wrong", f"Bearer {'x' * 5000}", "Bearer \xe9\xff"])
def test_a_wrong_token_is_refused_even_where_none_is_needed(bench: GateBench, header: str) -> None:
    refused = httpx.get(f"{bench.url}/healthz", headers={b"Authorization": header.encode("latin-1")}, verify=False)
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["", "Bearer", "Basic bWU6bWU="])
def test_a_request_without_a_token_is_refused_by_the_route(bench: GateBench, header: str) -> None:
    with bench.client(Authorization=header) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/api/server").status_code == 401


def signed_in(bench: GateBench, client: httpx.Client, code: str) -> str:
    answer = client.post("/api/session", json={"code": code})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["csrf_token"])


def test_a_link_signs_a_browser_in_once(bench: GateBench) -> None:
    code = bench.code()
    with bench.client() as browser, bench.client() as second:
        answer = browser.post("/api/session", json={"code": code})
        assert {**answer.json(), "csrf_token": 0, "expires_at": 0} == {
            "user": "me",
            "role": "admin",
            "rights": ["manage", "read", "train"],
            "csrf_token": 0,
            "expires_at": 0,
        }
        assert browser.get("/api/session").json() == answer.json()
        assert browser.get("/api/server").status_code == 200
        assert second.post("/api/session", json={"code": code}).status_code == 401


def test_a_session_of_a_token_has_the_rights_of_the_token(bench: GateBench) -> None:
    with bench.client() as browser:
        assert browser.post("/api/session", json={"code": bench.reading_token}).json()["rights"] == ["read"]


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(bench: GateBench) -> None:
    with bench.client() as browser:
        cookie = browser.post("/api/session", json={"code": bench.code()}).headers["set-cookie"]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert "secure" not in attributes


def test_the_cookie_travels_only_encrypted_where_the_public_address_is_https(tmp_path: Path) -> None:
    with gate_bench(tmp_path, gate=GatePolicy(is_https=True)) as bench, bench.client() as browser:
        answer = browser.post("/api/session", json={"code": bench.code()})
    assert "secure" in answer.headers["set-cookie"].lower()
    assert answer.headers["strict-transport-security"]


def test_a_change_from_a_browser_needs_the_token_of_its_session(bench: GateBench) -> None:
    with bench.client() as browser, bench.client() as other:
        csrf_token = signed_in(bench, browser, bench.code())
        others = signed_in(bench, other, bench.code())
        body = {"up_to": 0}
        for wrong in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": others}, {"X-CSRF-Token": csrf_token[:-1]}):
            refused = browser.post(CHANGE, json=body, headers=wrong)
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:stationmaster:problem:Forbidden")
        assert browser.post(CHANGE, json=body, headers={"X-CSRF-Token": csrf_token}).status_code == 204


def test_signing_out_ends_the_session_everywhere(bench: GateBench) -> None:
    with bench.client() as browser, bench.client() as thief:
        csrf_token = signed_in(bench, browser, bench.code())
        ((name, secret),) = browser.cookies.items()
        thief.cookies.set(name, secret)
        assert thief.get("/api/session").status_code == 200
        assert browser.delete("/api/session").status_code == 403
        assert browser.delete("/api/session", headers={"X-CSRF-Token": csrf_token}).status_code == 204
        assert not browser.cookies
        assert thief.get("/api/session").status_code == 401
        assert browser.delete("/api/session").status_code == 204


def test_a_browser_with_an_old_cookie_can_sign_in_again(bench: GateBench) -> None:
    with bench.client() as first:
        signed_in(bench, first, bench.code())
        (name,) = first.cookies
    with bench.client(Cookie=f"{name}=old; other=1") as browser:
        assert browser.get("/sign-in").status_code == 200
        assert browser.get("/api/server").status_code == 401
        assert browser.post("/api/session", json={"code": bench.code()}).status_code == 200


def test_a_browser_is_signed_in_to_two_servers_of_one_host(bench: GateBench, tmp_path: Path) -> None:
    """It sends the cookies of a host to every port of it."""
    with gate_bench(tmp_path) as second, bench.client() as browser:
        for each in (bench, second):
            assert browser.post(f"{each.url}/api/session", json={"code": each.code()}).status_code == 200
        csrf_token = browser.get(f"{second.url}/api/session").json()["csrf_token"]
        assert browser.get("/api/session").status_code == 200, "signing in to the second left the first alone"
        browser.delete(f"{second.url}/api/session", headers={"X-CSRF-Token": csrf_token})
        assert browser.get(f"{second.url}/api/session").status_code == 401
        assert browser.get("/api/session").status_code == 200


def test_a_revoked_token_ends_the_sessions_that_it_opened(bench: GateBench) -> None:
    created = bench.station.tokens.create(NewToken(name="short", user="me"))
    with bench.client() as browser:
        signed_in(bench, browser, created.secret)
        bench.station.tokens.revoke(created.token.id)
        assert browser.get("/api/session").status_code == 401


def test_failed_sign_ins_are_limited_but_valid_tokens_still_work(tmp_path: Path) -> None:
    with gate_bench(tmp_path, gate=GatePolicy(failed_sign_ins_per_minute=3)) as bench, bench.client() as client:
        good = {"Authorization": f"Bearer {bench.token}"}
        assert client.get("/api/server", headers=good).status_code == 200
        bad = [client.get("/api/server", headers={"Authorization": f"Bearer sm_{n}"}) for n in range(3)]
        assert [each.status_code for each in bad] == [401, 401, 401]
        refused = client.get("/api/server", headers={"Authorization": "Bearer sm_4"})
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 20
        assert client.post("/api/session", json={"code": bench.code()}).status_code == 429
        assert client.get("/api/server", headers=good).status_code == 200
        assert client.get("/healthz").status_code == 200


def test_wrong_codes_count_as_failed_sign_ins(tmp_path: Path) -> None:
    with gate_bench(tmp_path, gate=GatePolicy(failed_sign_ins_per_minute=2)) as bench, bench.client() as client:
        tries = [client.post("/api/session", json={"code": f"wrong{n}"}).status_code for n in range(3)]
    assert tries == [401, 401, 429]


def test_without_sign_in_every_request_is_the_single_users(tmp_path: Path) -> None:
    with gate_bench(tmp_path, gate=GatePolicy(everyone=EVERYONE)) as bench, bench.client() as client:
        assert client.get("/api/server").json()["caller"]["user"] == "me"
        assert client.get("/api/session").json()["csrf_token"] is None
        assert client.post(CHANGE, json={"up_to": 0}).status_code == 204
