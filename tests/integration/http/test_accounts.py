"""Accounts over HTTP: who a request speaks for, and what becomes of a secret."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from stationmaster.model import Right, Role
from stationmaster.money import MicroDollars
from stationmaster.station.credits import Grant
from stationmaster.station.http.station import HttpStation
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.jobs.http_world import HttpWorld


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpWorld]:
    """A server with ann, who trains, and eve, who is an administrator as well as the single user."""
    with HttpWorld(tmp_path_factory.mktemp("accounts"), STATIONMASTER_BILLING__ENABLED="1") as opened:
        opened.local.users.add("ann", UserChanges(inbox=True))
        opened.local.users.add("eve", UserChanges(inbox=True, role=Role.ADMIN))
        yield opened


def client_of(world: HttpWorld, user: str, *, rights: frozenset[Right] = frozenset(Right)) -> httpx.Client:
    created = world.local.tokens.create(NewToken(name="program", user=user, rights=rights))
    return httpx.Client(
        base_url=world.urls[0], headers={"Authorization": f"Bearer {created.secret}"}, timeout=60.0, verify=False
    )


def test_in_a_path_me_is_whoever_asks(world: HttpWorld) -> None:
    for user in ("ann", "eve"):
        with client_of(world, user) as client:
            assert client.get("/api/users/me").json()["name"] == user
            assert client.get("/api/users/me/credits").json()["user"] == user
            client.post("/api/users/me/inbox/test", json={"text": f"for {user}"})
            assert client.get("/api/users/me/inbox").json()["messages"][-1]["text"] == f"for {user}"
            assert client.post("/api/tokens", json={"name": "bot"}).json()["user"] == user
    assert world.local.notifications.count_unread("me") == 0


def test_a_command_of_a_user_speaks_about_themselves_by_default(world: HttpWorld) -> None:
    secret = world.local.tokens.create(NewToken(name="laptop", user="ann")).secret
    station = HttpStation(world.urls[0], secret)
    try:
        world.local.notifications.try_channels("ann", "hello")
        assert station.notifications.count_unread() == world.local.notifications.count_unread("ann") > 0
        assert station.tokens.create_link("me").user == "ann"
        assert station.credits.account("me").user == "ann"
    finally:
        station.close()


def test_a_secret_is_answered_once_and_kept_by_no_cache(world: HttpWorld) -> None:
    with client_of(world, "ann") as client:
        created = client.post("/api/tokens", json={"name": "bot", "expires_in_seconds": 60})
        assert (created.status_code, created.headers["cache-control"]) == (201, "no-store")
        link = client.post("/api/users/me/sign-in-links")
        assert (link.status_code, link.headers["cache-control"]) == (201, "no-store")
        listed = client.get("/api/tokens")
    assert created.json()["id"] in listed.text
    assert created.json()["secret"] not in listed.text


def test_the_actor_of_a_change_is_whoever_asks_whatever_they_claim(world: HttpWorld) -> None:
    with client_of(world, "eve") as client:
        body = {"amount_micros": 100, "reason": "welcome"}
        claimed = client.post("/api/users/ann/credits/grants", json={**body, "actor": "ann"})
        assert claimed.status_code == 422
        assert client.post("/api/users/ann/credits/grants", json=body).status_code == 200
        (entry,) = client.get("/api/ledger", params={"user": "ann"}).json()["items"]
    assert (entry["actor"], entry["user"], entry["balance_micros"]) == ("eve", "ann", 100)


def test_the_ledger_is_read_page_by_page(world: HttpWorld) -> None:
    for number in range(5):
        world.local.credits.grant(Grant(user="eve", amount=MicroDollars(1 + number), reason="part", actor="me"))
    with client_of(world, "eve") as client:
        pages: list[list[int]] = []
        after: str | None = "0"
        while after is not None:
            page = client.get("/api/ledger", params={"user": "me", "limit": 2, "after": after}).json()
            pages.append([entry["balance_micros"] for entry in page["items"]])
            after = page["next"]
    assert pages == [[1, 2], [3, 4], [5]]


def test_a_token_that_may_not_manage_makes_no_administrator(world: HttpWorld) -> None:
    with client_of(world, "eve", rights=frozenset({Right.READ, Right.TRAIN})) as client:
        assert client.patch("/api/users/ann", json={"role": "admin"}).status_code == 403
        assert client.patch("/api/users/ann", json={"inbox": False}).status_code == 403
        assert client.post("/api/tokens", json={"name": "bot", "rights": ["manage"]}).status_code == 403
        assert client.post("/api/tokens", json={"name": "bot", "user": "ann"}).status_code == 403
        assert client.post("/api/users/me/sign-in-links").status_code == 403
        assert client.post("/api/tokens", json={"name": "bot"}).json()["rights"] == ["read", "train"]
    assert world.local.users.find("ann").role is Role.USER


def test_whoever_is_removed_is_refused_from_the_next_request_on(world: HttpWorld) -> None:
    world.local.users.add("bob", UserChanges())
    with client_of(world, "bob") as client:
        assert client.get("/api/users/me").status_code == 200
        world.station.users.remove("bob")
        assert client.get("/api/users/me").status_code == 401
        world.station.users.add("bob", UserChanges(role=Role.ADMIN))
        assert client.get("/api/users/me").status_code == 401
