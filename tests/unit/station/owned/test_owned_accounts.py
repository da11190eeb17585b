"""Users, tokens, credits, audit log and inbox, as those see them who are no administrators."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stationmaster.errors import Forbidden, NotFound
from stationmaster.model import RIGHTS, Caller, Right, Role
from stationmaster.money import MicroDollars
from stationmaster.station.audit import AuditEntry
from stationmaster.station.base import Station
from stationmaster.station.credits import Adjustment, Grant, RefundRequest
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.owned.station import station_of_caller
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.jobs.local_world import LocalWorld

READ = frozenset({Right.READ})
READ_AND_TRAIN = frozenset({Right.READ, Right.TRAIN})

ANN = Caller(user="ann", role=Role.USER, rights=RIGHTS[Role.USER])
READER = Caller(user="ann", role=Role.USER, rights=READ, token="none")
VERA = Caller(user="vera", role=Role.VIEWER, rights=RIGHTS[Role.VIEWER])
TRAINING_ADMIN = Caller(user="me", role=Role.ADMIN, rights=READ_AND_TRAIN, token="none")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorld]:
    """Ann, Bob and Vera, who have a token and credits each."""
    folder = tmp_path_factory.mktemp("accounts")
    with LocalWorld(folder, STATIONMASTER_BILLING__ENABLED="1") as opened:
        for name, role in (("ann", Role.USER), ("bob", Role.USER), ("vera", Role.VIEWER)):
            opened.station.users.add(name, UserChanges(inbox=True, role=role))
            opened.station.tokens.create(NewToken(name=f"{name}'s", user=name))
            opened.station.credits.grant(Grant(user=name, amount=MicroDollars(5), reason="welcome", actor="me"))
            LocalDoorkeeper(opened.store).record(
                AuditEntry(at=0.0, user=name, token=None, action="POST /api/jobs", subject=name, status=201)
            )
        yield opened


def seen_by(caller: Caller, world: LocalWorld) -> Station:
    return station_of_caller(caller, world.station)


@pytest.mark.parametrize("caller", [ANN, READER, VERA])
def test_everybody_sees_themselves_and_nobody_else(world: LocalWorld, caller: Caller) -> None:
    station, name = seen_by(caller, world), caller.user
    assert [one.user.name for one in station.users.listed()] == [name]
    assert station.users.find(name).name == name
    assert {one.user for one in station.tokens.listed()} == {name}
    assert [one.user for one in station.credits.accounts()] == [name]
    assert station.credits.account(name).balance == 5
    assert {one.user for one in station.credits.entries()} == {name}
    assert {one.user for one in station.audit.entries()} == {name}
    assert station.notifications.inbox(name) == []


OTHERS: dict[str, Callable[[Station, str], object]] = {
    "find": lambda station, name: station.users.find(name),
    "change": lambda station, name: station.users.change(name, UserChanges(inbox=True)),
    "remove": lambda station, name: station.users.remove(name),
    "create token": lambda station, name: station.tokens.create(NewToken(name="bot", user=name)),
    "create link": lambda station, name: station.tokens.create_link(name),
    "account": lambda station, name: station.credits.account(name),
    "entries": lambda station, name: station.credits.entries(name),
    "inbox": lambda station, name: station.notifications.inbox(name),
    "mark read": lambda station, name: station.notifications.mark_read(name, up_to=1),
    "try channels": lambda station, name: station.notifications.try_channels(name, "hello"),
}


@pytest.mark.parametrize("ask", OTHERS)
def test_another_user_is_as_unknown_as_one_who_does_not_exist(world: LocalWorld, ask: str) -> None:
    said = []
    for name in ("bob", "nobody"):
        with pytest.raises(NotFound) as caught:
            OTHERS[ask](seen_by(ANN, world), name)
        said.append((str(caught.value).replace(name, "NAME"), str(caught.value.hint).replace(name, "NAME")))
    assert said[0] == said[1]


def test_lists_of_another_user_are_empty_and_their_tokens_unknown(world: LocalWorld) -> None:
    station = seen_by(ANN, world)
    assert (station.tokens.listed("bob"), station.audit.entries(user="bob")) == ([], [])
    (token,) = world.station.tokens.listed("bob")
    with pytest.raises(NotFound, match=f"there is no token {token.id}"):
        station.tokens.revoke(token.id)
    assert world.station.tokens.listed("bob") == [token]


FOR_ADMINISTRATORS: dict[str, Callable[[Station], object]] = {
    "add": lambda station: station.users.add("eve", UserChanges()),
    "change own role": lambda station: station.users.change("ann", UserChanges(role=Role.ADMIN)),
    "grant": lambda station: station.credits.grant(Grant(user="ann", amount=MicroDollars(1), reason="x", actor="ann")),
    "adjust": lambda station: station.credits.adjust(
        Adjustment(user="ann", amount=MicroDollars(1), reason="x", actor="ann")
    ),
    "refund": lambda station: station.credits.refund(RefundRequest(job="x", reason="x", actor="ann")),
    "prove": lambda station: station.credits.prove(),
}


@pytest.mark.parametrize("caller", [ANN, READER, TRAINING_ADMIN], ids=["ann", "reader", "training administrator"])
@pytest.mark.parametrize("ask", FOR_ADMINISTRATORS)
def test_only_who_may_manage_gives_roles_and_credits(world: LocalWorld, ask: str, caller: Caller) -> None:
    before = (world.station.users.listed(), world.station.credits.account("ann"))
    with pytest.raises(Forbidden):
        FOR_ADMINISTRATORS[ask](seen_by(caller, world))
    assert (world.station.users.listed(), world.station.credits.account("ann")) == before


def test_a_user_changes_how_messages_reach_them_and_a_viewer_does_not(world: LocalWorld) -> None:
    assert seen_by(ANN, world).users.change("ann", UserChanges(mute=("epoch",))).muted == ("epoch",)
    for caller in (VERA, READER):
        with pytest.raises(Forbidden):
            seen_by(caller, world).users.change(caller.user, UserChanges(mute=("epoch",)))
        with pytest.raises(Forbidden):
            seen_by(caller, world).tokens.create(NewToken(name="bot", user=caller.user))


def test_nobody_removes_themselves(world: LocalWorld) -> None:
    for caller in (ANN, VERA):
        with pytest.raises(Forbidden):
            seen_by(caller, world).users.remove(caller.user)


def token_of(world: LocalWorld, *, rights: frozenset[Right], expires_in: float | None = None) -> Caller:
    """Ann, with a token of these rights."""
    new = NewToken(name="parent", user="ann", rights=rights, expires_in=expires_in)
    return LocalDoorkeeper(world.store).caller_of_token(world.station.tokens.create(new).secret)


def test_a_token_is_created_with_the_rights_of_its_creator_at_most(world: LocalWorld) -> None:
    tokens = seen_by(token_of(world, rights=READ_AND_TRAIN), world).tokens
    assert tokens.create(NewToken(name="child", user="ann")).token.rights == READ_AND_TRAIN
    assert tokens.create(NewToken(name="child", user="ann", rights=READ)).token.rights == READ
    with pytest.raises(Forbidden, match="manage"):
        tokens.create(NewToken(name="child", user="ann", rights=frozenset({Right.MANAGE})))


def test_an_administrator_s_token_that_may_not_manage_creates_none_that_may(world: LocalWorld) -> None:
    tokens = seen_by(TRAINING_ADMIN, world).tokens
    assert tokens.create(NewToken(name="child", user="me")).token.rights == READ_AND_TRAIN
    with pytest.raises(Forbidden):
        tokens.create(NewToken(name="child", user="ann"))
    with pytest.raises(Forbidden):
        tokens.create_link("me")
    assert {one.user for one in tokens.listed()} == {"me", "ann", "bob", "vera"}, "but they see all"
    assert seen_by(TRAINING_ADMIN, world).credits.account("bob").balance == 5


def test_a_token_creates_none_that_outlives_it(world: LocalWorld) -> None:
    tokens = seen_by(token_of(world, rights=READ_AND_TRAIN, expires_in=3600.0), world).tokens
    for seconds in (None, 4000.0):
        with pytest.raises(Forbidden, match="lasts longer than itself"):
            tokens.create(NewToken(name="child", user="ann", expires_in=seconds))
    assert tokens.create(NewToken(name="child", user="ann", expires_in=60.0)).token.expires_at is not None


def test_a_link_is_only_for_who_has_all_rights_of_the_role_for_good(world: LocalWorld) -> None:
    assert seen_by(ANN, world).tokens.create_link("ann").user == "ann"
    assert seen_by(VERA, world).tokens.create_link("vera").user == "vera"
    assert seen_by(token_of(world, rights=READ_AND_TRAIN), world).tokens.create_link("ann").user == "ann"
    for weaker in (token_of(world, rights=READ), token_of(world, rights=READ_AND_TRAIN, expires_in=60.0)):
        with pytest.raises(Forbidden, match="cannot create a sign-in link"):
            seen_by(weaker, world).tokens.create_link("ann")


def test_who_only_reads_revokes_their_own_token_and_no_other(world: LocalWorld) -> None:
    reader, other = token_of(world, rights=READ), token_of(world, rights=READ)
    assert reader.token is not None
    assert other.token is not None
    with pytest.raises(Forbidden):
        seen_by(reader, world).tokens.revoke(other.token)
    assert seen_by(reader, world).tokens.revoke(reader.token).revoked_at is not None
    assert seen_by(ANN, world).tokens.revoke(other.token).revoked_at is not None
