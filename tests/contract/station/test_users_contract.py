"""Users, as every face may rely on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stationmaster.errors import NotFound, UserError
from stationmaster.money import MicroDollars
from stationmaster.station.credits import Grant
from stationmaster.station.users import User, UserChanges
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station

OpenWorld = Callable[..., LocalWorld]

EVERYTHING: dict[str, Any] = {
    "telegram_id": "17",
    "discord_id": "4",
    "email": "ann@example.com",
    "inbox": True,
    "quiet": "22:00-07:00",
    "time_zone": "Europe/Berlin",
}


@every_station
def test_a_user_is_added_found_listed_and_removed(world: LocalWorld) -> None:
    users = world.station.users
    assert users.listed() == []
    bob = users.add("bob", UserChanges())
    ann = users.add("ann", UserChanges(**EVERYTHING, mute=("milestone", "epoch", "epoch")))
    assert bob == User(name="bob")
    assert ann == User(name="ann", **EVERYTHING, muted=("epoch", "milestone"))
    assert [one.user for one in users.listed()] == [ann, bob]
    assert users.find("ann") == ann
    users.remove("bob")
    assert [one.user for one in users.listed()] == [ann]


def test_only_what_is_named_is_changed(world: LocalWorld) -> None:
    users = world.station.users
    before = users.add("ann", UserChanges(**EVERYTHING, mute=("epoch",)))
    assert users.change("ann", UserChanges()) == before
    changed = users.change("ann", UserChanges(email="ann@example.org", mute=("start",), unmute=("epoch",)))
    assert changed == User(name="ann", **{**EVERYTHING, "email": "ann@example.org"}, muted=("start",))
    assert users.find("ann") == changed


def test_an_empty_text_removes_a_value_but_there_is_always_a_time_zone(world: LocalWorld) -> None:
    users = world.station.users
    users.add("ann", UserChanges(**EVERYTHING))
    emptied = users.change(
        "ann", UserChanges(telegram_id="", discord_id="", email="", inbox=False, quiet="", time_zone="")
    )
    assert emptied == users.find("ann") == User(name="ann", time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"telegram_id": "x"}, "--telegram-id: is not a Telegram chat"),
        ({"discord_id": "abc"}, "--discord-id: is not a Discord user ID"),
        ({"email": "ann@example.com\nBcc: all@example.com"}, "--email: is not an e-mail address"),
        ({"quiet": "late"}, "--quiet-hours: 'late' is not a span of hours"),
        ({"quiet": "22:00-22:00"}, "--quiet-hours: '22:00-22:00' is an empty span of hours"),
        ({"time_zone": "Mars"}, "--time-zone: Mars is not a time zone"),
        ({"mute": ("epoch", "noise")}, "noise is not a kind of notification"),
        ({"unmute": ("noise",)}, "noise is not a kind of notification"),
    ],
)
def test_a_value_that_is_not_valid_is_refused_and_nothing_is_written(
    world: LocalWorld, values: dict[str, Any], words: str
) -> None:
    users = world.station.users
    ann = users.add("ann", UserChanges(email="ann@example.com"))
    for ask, name in ((users.add, "bob"), (users.change, "ann")):
        with pytest.raises(UserError) as caught:
            ask(name, UserChanges(inbox=True, **values))
        assert words in str(caught.value)
        assert caught.value.hint
    assert [one.user for one in users.listed()] == [ann]


@pytest.mark.parametrize("name", ["me", "operators", "", "  ", "two\nlines", "x" * 101])
def test_a_name_that_nobody_can_have_is_refused(untouched: LocalWorld, name: str) -> None:
    for ask in (untouched.station.users.add, untouched.station.users.change):
        with pytest.raises(UserError) as caught:
            ask(name, UserChanges())
        assert type(caught.value) is UserError
        assert caught.value.hint
    assert untouched.station.users.listed() == []


@every_station
def test_a_name_is_taken_once(world: LocalWorld) -> None:
    ann = world.station.users.add("ann", UserChanges(telegram_id="17"))
    with pytest.raises(UserError, match="user ann already exists"):
        world.station.users.add("ann", UserChanges(telegram_id="18"))
    assert world.station.users.find("ann") == ann
    world.station.users.remove("ann")
    assert world.station.users.add("ann", UserChanges()) == User(name="ann")


@pytest.mark.parametrize("verb", ["find", "change", "remove"])
def test_a_user_who_was_not_added_is_not_found(untouched: LocalWorld, verb: str) -> None:
    users = untouched.station.users
    asks: dict[str, Callable[[str], object]] = {
        "find": users.find,
        "change": lambda name: users.change(name, UserChanges(inbox=True)),
        "remove": users.remove,
    }
    with pytest.raises(NotFound, match="there is no user bob"):
        asks[verb]("bob")
    assert users.listed() == []


@every_station
def test_the_list_says_what_each_can_spend_only_where_credits_are_on(open_world: OpenWorld) -> None:
    without = open_world()
    without.station.users.add("ann", UserChanges())
    without.station.users.add("bob", UserChanges())
    assert [one.balance for one in without.station.users.listed()] == [None, None]
    world = open_world(STATIONMASTER_BILLING__ENABLED="1")
    world.station.credits.grant(Grant(user="ann", amount=MicroDollars(250), reason="welcome", actor="eve"))
    assert [(one.user.name, one.balance) for one in world.station.users.listed()] == [("ann", 250), ("bob", 0)]
