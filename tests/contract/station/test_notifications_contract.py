"""The inbox and the channels to people, as every face may rely on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stationmaster.errors import NotFound, NotifyRefused
from stationmaster.station.notifications import Delivery, Note
from stationmaster.station.users import UserChanges
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.servers.messenger_server import TELEGRAM_BLOCKED, MessengerServer

OpenWorld = Callable[..., LocalWorld]


@pytest.fixture
def server() -> Iterator[MessengerServer]:
    with MessengerServer() as started:
        yield started


def send(world: LocalWorld, *texts: str, user: str = "me") -> None:
    """Messages for the inbox of somebody whom no other channel leads to."""
    for text in texts:
        assert world.station.notifications.try_channels(user, text) == [Delivery(channel="inbox", success=True)]


def texts(world: LocalWorld, user: str = "me", *, with_read: bool = False, limit: int = 50) -> list[str]:
    return [note.text for note in world.station.notifications.inbox(user, with_read=with_read, limit=limit)]


@every_station
def test_messages_are_read_oldest_first_and_the_newest_of_them(world: LocalWorld) -> None:
    assert (world.station.notifications.count_unread(), texts(world)) == (0, [])
    send(world, "first <b>*_", "second", "third")
    assert texts(world) == ["first <b>*_", "second", "third"]
    assert texts(world, limit=2) == ["second", "third"]
    (note, *_) = world.station.notifications.inbox()
    assert (note.kind, note.job_id, note.read_at) == ("message", None, None)
    assert 0 <= world.station.now() - note.at < 60


@every_station
def test_a_long_inbox_is_read_to_its_beginning(world: LocalWorld) -> None:
    for number in range(520):
        note = Note(key=f"note {number}", kind="message", text=str(number), priority="normal", at=1.0)
        world.store.inbox.put("me", note)
    found = world.station.notifications.inbox(limit=510)
    assert [note.text for note in found] == [str(number) for number in range(10, 520)]
    older = world.station.notifications.inbox(limit=100, before=found[0].id)
    assert [note.text for note in older] == [str(number) for number in range(10)]


@every_station
def test_messages_stay_unread_until_they_are_marked(world: LocalWorld) -> None:
    notifications = world.station.notifications
    send(world, "first", "second", "third")
    assert notifications.count_unread() == len(notifications.inbox()) == 3
    second = notifications.inbox()[1].id
    assert second is not None
    for _ in range(2):
        notifications.mark_read("me", up_to=second)
        assert (notifications.count_unread(), texts(world)) == (1, ["third"])
    assert texts(world, with_read=True) == ["first", "second", "third"]
    assert [note.read_at is None for note in notifications.inbox(with_read=True)] == [False, False, True]


@every_station
def test_everybody_has_an_inbox_of_their_own(world: LocalWorld) -> None:
    world.station.users.add("ann", UserChanges(inbox=True))
    send(world, "for ann", user="ann")
    send(world, "for me")
    assert (texts(world, "ann"), texts(world)) == (["for ann"], ["for me"])
    ((note,), notifications) = world.station.notifications.inbox("ann"), world.station.notifications
    assert note.id is not None
    notifications.mark_read("me", up_to=note.id + 1)
    assert (notifications.count_unread("ann"), notifications.count_unread()) == (1, 0)


def test_messages_of_a_removed_user_can_be_read_and_a_stranger_has_none(world: LocalWorld) -> None:
    world.station.users.add("ann", UserChanges(inbox=True))
    assert texts(world, "ann") == []
    send(world, "for ann", user="ann")
    world.station.users.remove("ann")
    assert texts(world, "ann") == ["for ann"]
    assert texts(world, "operators") == []
    for ask in (world.station.notifications.inbox, lambda name: world.station.notifications.mark_read(name, up_to=1)):
        with pytest.raises(NotFound, match="there is no user bob"):
            ask("bob")
    assert world.station.notifications.count_unread("bob") == 0


def test_every_channel_of_a_user_is_tried(open_world: OpenWorld, server: MessengerServer) -> None:
    world = open_world(**server.environ)
    world.station.users.add("ann", UserChanges(telegram_id="17", discord_id="4", inbox=True))
    tried = world.station.notifications.try_channels("ann", "first <b>*_")
    assert [(one.channel, one.success, one.problem) for one in tried] == [
        ("telegram", True, None),
        ("discord", True, None),
        ("inbox", True, None),
    ]
    assert [message.service for message in server.received] == ["telegram", "discord"]
    assert server.wrong == []
    assert texts(world, "ann") == ["first <b>*_"]


def test_a_channel_that_does_not_work_says_why_and_the_others_are_tried(
    open_world: OpenWorld, server: MessengerServer
) -> None:
    world = open_world(**server.environ)
    server.troubles["telegram"] = [TELEGRAM_BLOCKED]
    world.station.users.add("ann", UserChanges(telegram_id="17", discord_id="4"))
    blocked, sent = world.station.notifications.try_channels("ann", "hello")
    assert (blocked.channel, blocked.success, sent.channel, sent.success) == ("telegram", False, "discord", True)
    assert "blocked by the user" in str(blocked.problem)


def test_a_user_whom_no_channel_leads_to_cannot_be_tried(world: LocalWorld) -> None:
    world.station.users.add("ann", UserChanges(telegram_id="17"))  # without the bot's token
    for name in ("ann", "bob"):
        with pytest.raises(NotifyRefused, match=f"No notification channel for user {name}") as caught:
            world.station.notifications.try_channels(name, "hello")
        assert caught.value.hint


def test_the_operators_have_channels_of_their_own(open_world: OpenWorld, server: MessengerServer) -> None:
    apprise = {"STATIONMASTER_NOTIFY__OPERATORS__APPRISE_URLS": f'["{server.apprise_url}"]'}
    world = open_world(**server.environ, **apprise)
    assert [one.channel for one in world.station.notifications.try_operator_channels("hello")] == ["apprise"]
    assert "hello" in server.texts("apprise")[0]
    assert texts(world) == []


def test_without_channels_of_their_own_the_single_user_is_the_operator(world: LocalWorld) -> None:
    assert [one.channel for one in world.station.notifications.try_operator_channels("hello")] == ["inbox"]
    assert texts(world) == ["hello"]
