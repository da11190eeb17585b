"""The first channel that works takes the message; without any channel the log says so, to the letter."""

from __future__ import annotations

import pytest
import structlog

from stationmaster.control.messages.recipients import Recipient, Route
from stationmaster.control.messages.sender import MessageSender
from stationmaster.errors import NotifyBusy, NotifyError, NotifyRefused
from stationmaster.model import Delivery
from stationmaster.notify.base import Message
from tests.support.asynchronous_tests import asynchronous

MESSAGE = Message(key="k", kind="message", text="hello", at=0.0)
CHAIN = ("telegram", "discord", "inbox")


class Fickle:
    """A channel that fails as often as it is told to, then works."""

    def __init__(self, *troubles: NotifyError) -> None:
        self.troubles = list(troubles)
        self.sent: list[str] = []

    async def send(self, recipient: str, message: Message) -> None:
        if self.troubles:
            raise self.troubles.pop(0)
        self.sent.append(recipient)

    async def check(self, recipient: str | None) -> str:
        return "not asked here"


def ann(*channels: str) -> Recipient:
    routes = tuple(Route(channel=name, address=f"ann@{name}") for name in channels)
    return Recipient(name="ann", purpose="owner", routes=routes)


async def delivered(
    *channels: str, tries: int | None = None, telegram: Fickle | None = None, discord: Fickle | None = None
) -> Delivery:
    sender = MessageSender({"telegram": telegram or Fickle(), "discord": discord or Fickle(), "inbox": Fickle()})
    return await sender.send(ann(*channels), MESSAGE, tries=tries)


@asynchronous
async def test_telegram_comes_first() -> None:
    assert (await delivered(*CHAIN)).channel == "telegram"
    assert (await delivered("discord", "inbox")).channel == "discord"
    assert (await delivered("inbox")).channel == "inbox"


@asynchronous
async def test_after_a_failed_channel_the_next_is_tried() -> None:
    refused = NotifyRefused()
    assert (await delivered(*CHAIN, telegram=Fickle(refused))).channel == "discord"
    assert (await delivered(*CHAIN, telegram=Fickle(refused), discord=Fickle(refused))).channel == "inbox"
    lost = await delivered("telegram", "discord", telegram=Fickle(refused), discord=Fickle(refused))
    assert (lost.channel, lost.success, lost.retry_in) == ("none", False, None)


@asynchronous
async def test_a_user_without_a_channel_is_logged_to_the_letter() -> None:
    with structlog.testing.capture_logs() as logs:
        result = await delivered()
    assert (result.channel, result.success) == ("none", False)
    assert [(entry["log_level"], entry["event"]) for entry in logs] == [
        ("warning", "No notification channel for user ann")
    ]


@asynchronous
async def test_a_short_wait_that_a_service_asks_for_is_kept() -> None:
    busy = NotifyBusy(retry_after_seconds=7)
    assert (await delivered(*CHAIN, tries=0, telegram=Fickle(busy))).retry_in == 7
    too_long = NotifyBusy(retry_after_seconds=3600)
    assert (await delivered(*CHAIN, tries=0, telegram=Fickle(too_long))).channel == "discord"


@asynchronous
async def test_trouble_that_may_pass_is_waited_out_before_the_inbox_counts() -> None:
    waits: list[float | None] = []
    for tries in range(6):
        result = await delivered("telegram", "inbox", tries=tries, telegram=Fickle(NotifyBusy()))
        waits.append(result.retry_in)
    assert waits[-1] is None
    assert result.channel == "inbox"
    assert waits[:-1] == sorted(wait for wait in waits[:-1] if wait is not None)


@asynchronous
async def test_another_channel_that_works_at_once_is_better_than_waiting() -> None:
    assert (await delivered(*CHAIN, tries=0, telegram=Fickle(NotifyBusy()))).channel == "discord"


@pytest.mark.parametrize("problem", [NotifyBusy(retry_after_seconds=1), NotifyRefused()])
@asynchronous
async def test_who_asks_once_gets_an_answer_at_once(problem: NotifyError) -> None:
    assert (await delivered(*CHAIN, telegram=Fickle(problem))).channel == "discord"
