"""Tokens and sign-in links, as every face may rely on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import NotFound, NotSignedIn, UserError
from stationmaster.model import Right, Role
from stationmaster.station.doorkeeper import Doorkeeper
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station

BOT = NewToken(name="bot", user="ann")


def doorkeeper(world: LocalWorld) -> Doorkeeper:
    return LocalDoorkeeper(world.store)


def add(world: LocalWorld, name: str = "ann", role: Role = Role.USER) -> None:
    world.station.users.add(name, UserChanges(role=role))


@every_station
def test_a_token_lets_in_as_its_user_until_it_is_revoked(world: LocalWorld) -> None:
    add(world)
    created = world.station.tokens.create(BOT)
    assert created.token.rights == {Right.READ, Right.TRAIN}, "all rights are those of the role"
    caller = doorkeeper(world).caller_of_token(created.secret)
    assert (caller.user, caller.role, caller.rights) == ("ann", Role.USER, created.token.rights)
    (listed,) = world.station.tokens.listed("ann")
    assert (listed.id, listed.name, listed.user, listed.expires_at) == (created.token.id, "bot", "ann", None)
    assert listed.last_used_at is not None
    revoked = world.station.tokens.revoke(listed.id)
    assert revoked.revoked_at is not None
    assert world.station.tokens.revoke(listed.id) == revoked
    with pytest.raises(NotSignedIn, match="is not valid"):
        doorkeeper(world).caller_of_token(created.secret)


def test_the_secret_is_nowhere_in_the_store_or_the_home(world: LocalWorld) -> None:
    created = world.station.tokens.create(NewToken(name="bot", user="me"))
    link = world.station.tokens.create_link("me")
    opened = doorkeeper(world).open_session(link.code)
    secrets = [created.secret, link.code, opened.secret]
    files = [path for path in Path(world.settings.home).rglob("*") if path.is_file()]
    found = [path.name for path in files for secret in secrets if secret.encode() in path.read_bytes()]
    assert found == []
    assert created.secret not in repr(world.station.tokens.listed())


def test_tokens_are_listed_newest_first_and_by_user(world: LocalWorld) -> None:
    add(world)
    ids = [world.station.tokens.create(NewToken(name=name, user="ann")).token.id for name in ("first", "second")]
    world.station.tokens.revoke(ids[0])
    assert [token.name for token in world.station.tokens.listed("ann")] == ["second", "first"]
    assert [token.id for token in world.station.tokens.listed() if token.user == "ann"] == ids[::-1]
    assert world.station.tokens.listed("nobody") == []


def test_a_token_has_the_rights_that_were_asked_for_and_ends_in_time(world: LocalWorld) -> None:
    add(world)
    before = world.station.now()
    token = world.station.tokens.create(
        NewToken(name="bot", user="ann", rights=frozenset({Right.READ}), expires_in=3600.0)
    ).token
    assert token.rights == {Right.READ}
    assert token.expires_at is not None
    assert before + 3600 <= token.expires_at <= world.station.now() + 3600


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"expires_in": 0.0}, "expires"),
        ({"expires_in": -1.0}, "expires"),
        ({"expires_in": 1e300}, "expires"),
        ({"rights": frozenset()}, "rights"),
        ({"rights": frozenset({Right.MANAGE})}, "manage"),
    ],
)
def test_a_token_that_cannot_be_is_refused(world: LocalWorld, values: dict[str, Any], words: str) -> None:
    add(world)
    with pytest.raises(UserError, match=words) as caught:
        world.station.tokens.create(NewToken(**{"name": "bot", "user": "ann", **values}))
    assert type(caught.value) is UserError
    assert caught.value.hint
    assert world.station.tokens.listed("ann") == []


def test_there_is_no_token_or_link_for_a_stranger(world: LocalWorld) -> None:
    for ask in (lambda: world.station.tokens.create(BOT), lambda: world.station.tokens.create_link("ann")):
        with pytest.raises(NotFound, match="there is no user ann"):
            ask()
    with pytest.raises(NotFound, match="there is no token t1"):
        world.station.tokens.revoke("t1")


@every_station
def test_a_link_signs_a_browser_in_once(world: LocalWorld) -> None:
    add(world)
    link = world.station.tokens.create_link("ann")
    assert link.user == "ann"
    assert link.url.endswith(f"/sign-in#{link.code}")
    assert world.station.now() < link.expires_at < world.station.now() + 3600
    opened = doorkeeper(world).open_session(link.code)
    assert (opened.session.caller.user, opened.session.caller.token) == ("ann", None)
    assert doorkeeper(world).session(opened.secret) == opened.session
    with pytest.raises(NotSignedIn, match="it was used"):
        doorkeeper(world).open_session(link.code)
    doorkeeper(world).close_session(opened.secret)
    with pytest.raises(NotSignedIn, match="the session is over"):
        doorkeeper(world).session(opened.secret)


def test_a_session_by_a_token_has_the_rights_of_the_token_and_ends_with_it(world: LocalWorld) -> None:
    add(world)
    created = world.station.tokens.create(NewToken(name="bot", user="ann", rights=frozenset({Right.READ})))
    opened = doorkeeper(world).open_session(created.secret)
    assert opened.session.caller.rights == {Right.READ}
    world.station.tokens.revoke(created.token.id)
    with pytest.raises(NotSignedIn):
        doorkeeper(world).session(opened.secret)


@every_station
def test_a_changed_role_counts_from_the_next_request_on(world: LocalWorld) -> None:
    add(world, role=Role.ADMIN)
    secret = world.station.tokens.create(BOT).secret
    opened = doorkeeper(world).open_session(world.station.tokens.create_link("ann").code)
    for role, rights in ((Role.VIEWER, {Right.READ}), (Role.USER, {Right.READ, Right.TRAIN}), (Role.ADMIN, set(Right))):
        world.station.users.change("ann", UserChanges(role=role))
        for caller in (doorkeeper(world).caller_of_token(secret), doorkeeper(world).session(opened.secret).caller):
            assert (caller.role, set(caller.rights)) == (role, rights)


@every_station
def test_whoever_is_removed_is_shut_out_at_once_and_their_namesake_stays_out(world: LocalWorld) -> None:
    add(world)
    secret = world.station.tokens.create(BOT).secret
    opened = doorkeeper(world).open_session(world.station.tokens.create_link("ann").code)
    unused = world.station.tokens.create_link("ann")
    world.station.users.remove("ann")
    assert_shut_out(world, secret, opened.secret)
    add(world, role=Role.ADMIN)
    assert_shut_out(world, secret, opened.secret)
    with pytest.raises(NotSignedIn):
        doorkeeper(world).open_session(unused.code)
    (token,) = world.station.tokens.listed("ann")
    assert token.revoked_at is not None


def assert_shut_out(world: LocalWorld, token: str, cookie: str) -> None:
    with pytest.raises(NotSignedIn):
        doorkeeper(world).caller_of_token(token)
    with pytest.raises(NotSignedIn):
        doorkeeper(world).session(cookie)
