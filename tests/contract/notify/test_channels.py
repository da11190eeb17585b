"""Each channel speaks its service's API exactly, takes its troubles for what they are, and keeps its token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest

from stationmaster.errors import NotifyBusy, NotifyError, NotifyRefused
from stationmaster.notify.apprise import Apprise
from stationmaster.notify.base import Message, Priority
from stationmaster.notify.discord import Discord
from stationmaster.notify.slack import Slack
from stationmaster.notify.telegram import Telegram
from stationmaster.notify.webhook import Webhook
from tests.support.asynchronous_tests import asynchronous
from tests.support.servers.messenger_server import (
    DISCORD_CLOSED,
    DISCORD_TOKEN,
    TELEGRAM_BLOCKED,
    TELEGRAM_NO_CHAT,
    TELEGRAM_TOKEN,
    Answer,
    MessengerServer,
    discord_busy,
    telegram_busy,
)

TEXT = "⚠️ Training Stall Detected\n\nJob: <b>*_ & co\nProgress: 230/400 (57.5%)"
MESSAGE = Message(key="ab12cd34.event.7.ann", kind="stall", text=TEXT, at=1700000000.0, priority=Priority.HIGH)
LONG = Message(key="k", kind="message", text="<*🛑_" * 3000, at=0.0, more="More: stationmaster show job_1")


@pytest.fixture
def server() -> Iterator[MessengerServer]:
    with MessengerServer() as started:
        yield started
    assert started.wrong == []


@asynccontextmanager
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=10.0, trust_env=False, verify=False) as opened:
        yield opened


def telegram(opened: httpx.AsyncClient, server: MessengerServer, token: str = TELEGRAM_TOKEN) -> Telegram:
    return Telegram(opened, token=token, base_url=f"{server.url}/telegram")


def discord(opened: httpx.AsyncClient, server: MessengerServer, token: str = DISCORD_TOKEN) -> Discord:
    return Discord(opened, token=token, base_url=f"{server.url}/discord/api/v10/")


@asynchronous
async def test_telegram_shows_the_message_as_typed(server: MessengerServer) -> None:
    async with client() as opened:
        await telegram(opened, server).send("4711", MESSAGE)
    (message,) = server.received
    assert (message.recipient, message.text) == ("4711", TEXT)
    assert message.body["parse_mode"] == "HTML"
    assert server.calls == [f"/telegram/bot{TELEGRAM_TOKEN}/sendMessage"]


@asynchronous
async def test_markup_that_telegram_cannot_read_is_sent_as_plain_text(server: MessengerServer) -> None:
    said = "Bad Request: can't parse entities: Can't find end tag corresponding to start tag b"
    server.troubles["telegram"] = [Answer(status=400, document={"ok": False, "error_code": 400, "description": said})]
    async with client() as opened:
        await telegram(opened, server).send("4711", MESSAGE)
    (message,) = server.received
    assert message.text == TEXT
    assert "parse_mode" not in message.body


@asynchronous
async def test_a_long_message_fits_and_says_where_the_rest_is(server: MessengerServer) -> None:
    async with client() as opened:
        await telegram(opened, server).send("4711", LONG)
        await discord(opened, server).send("17", LONG)
    assert [message.service for message in server.received] == ["telegram", "discord"]
    assert all(message.text.endswith("…\nMore: stationmaster show job_1") for message in server.received)


@pytest.mark.parametrize("answer", [TELEGRAM_BLOCKED, TELEGRAM_NO_CHAT])
@asynchronous
async def test_a_person_whom_telegram_cannot_reach_is_refused(server: MessengerServer, answer: Answer) -> None:
    server.troubles["telegram"] = [answer]
    async with client() as opened:
        with pytest.raises(NotifyRefused) as caught:
            await telegram(opened, server).send("4711", MESSAGE)
    assert "/start" in str(caught.value.hint)


@asynchronous
async def test_a_rate_limit_says_how_long_to_wait(server: MessengerServer) -> None:
    server.troubles["telegram"] = [telegram_busy(7)]
    server.troubles["discord"] = [discord_busy(1.5)]
    server.troubles["slack"] = [Answer(status=429, document="slow down", headers={"Retry-After": "30"})]
    async with client() as opened:
        channels = (
            (telegram(opened, server), "4711"),
            (discord(opened, server), "17"),
            (Slack(opened), f"{server.url}/slack/x"),
        )
        waits = []
        for channel, recipient in channels:
            with pytest.raises(NotifyBusy) as caught:
                await channel.send(recipient, MESSAGE)
            waits.append(caught.value.retry_after_seconds)
    assert waits == [7.0, 1.5, 30.0]
    assert server.received == []


@pytest.mark.parametrize("status", [500, 502, 503])
@asynchronous
async def test_a_service_in_trouble_may_be_asked_again(server: MessengerServer, status: int) -> None:
    server.troubles["telegram"] = [Answer(status=status, document="<html>Bad Gateway</html>")]
    async with client() as opened:
        with pytest.raises(NotifyBusy):
            await telegram(opened, server).send("4711", MESSAGE)
        await telegram(opened, server).send("4711", MESSAGE)
    assert len(server.received) == 1


@asynchronous
async def test_discord_opens_a_direct_message_and_calls_nobody(server: MessengerServer) -> None:
    async with client() as opened:
        channel = discord(opened, server)
        await channel.send("17", MESSAGE)
        await channel.send("17", LONG)
    assert [path.removeprefix("/discord/api/v10") for path in server.calls] == [
        "/users/@me/channels",
        "/channels/dm-17/messages",
        "/channels/dm-17/messages",
    ]
    message = server.received[0]
    assert (message.recipient, message.text) == ("17", TEXT)
    assert message.body["allowed_mentions"] == {"parse": []}
    assert message.body["enforce_nonce"] is True


@asynchronous
async def test_the_same_message_again_is_one_message_to_discord_and_webhooks(server: MessengerServer) -> None:
    async with client() as opened:
        for _ in range(2):
            await discord(opened, server).send("17", MESSAGE)
            await Webhook(opened, secret="s").send(f"{server.url}/webhook/in", MESSAGE)
    assert sorted(message.service for message in server.received) == ["discord", "webhook"]


@asynchronous
async def test_a_person_who_takes_no_direct_messages_is_refused(server: MessengerServer) -> None:
    async with client() as opened:
        channel = discord(opened, server)
        await channel.send("17", MESSAGE)
        server.troubles["discord"] = [DISCORD_CLOSED]
        with pytest.raises(NotifyRefused, match="Cannot send messages"):
            await channel.send("17", LONG)


@asynchronous
async def test_no_error_tells_a_token(server: MessengerServer) -> None:
    errors: list[NotifyError] = []
    async with client() as opened:
        gone = Telegram(opened, token=TELEGRAM_TOKEN, base_url="http://127.0.0.1:1")
        for channel in (telegram(opened, server, "wrong:secret"), discord(opened, server, "wrong-secret"), gone):
            with pytest.raises(NotifyError) as caught:
                await channel.send("1", MESSAGE)
            errors.append(caught.value)
    assert [type(error) for error in errors] == [NotifyRefused, NotifyRefused, NotifyBusy]
    assert not any("secret" in f"{error} {error.hint} {error.__cause__!r}" for error in errors)


@asynchronous
async def test_slack_shows_the_message_as_typed(server: MessengerServer) -> None:
    async with client() as opened:
        await Slack(opened).send(f"{server.url}/slack/services/T/B/x", MESSAGE)
        server.troubles["slack"] = [Answer(status=404, document="no_service")]
        with pytest.raises(NotifyRefused, match="no_service"):
            await Slack(opened).send(f"{server.url}/slack/services/T/B/x", MESSAGE)
    assert server.texts("slack") == [TEXT]


@asynchronous
async def test_a_webhook_is_signed_and_can_be_checked(server: MessengerServer) -> None:
    secret = b"0123456789abcdef"
    given = f"whsec_{base64.b64encode(secret).decode()}"
    async with client() as opened:
        await Webhook(opened, secret=given, clock=lambda: 1700000123.9).send(f"{server.url}/webhook/in", MESSAGE)
    (message,) = server.received
    assert message.headers["webhook-timestamp"] == "1700000123"
    assert message.headers["webhook-id"] == message.headers["idempotency-key"] == MESSAGE.key
    signed = f"{MESSAGE.key}.1700000123.".encode() + json.dumps(message.body, ensure_ascii=False).encode()
    wanted = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    assert message.headers["webhook-signature"] == f"v1,{wanted}"
    assert message.body["kind"] == "stall"


@pytest.mark.parametrize(("status", "kind"), [(500, NotifyBusy), (409, NotifyBusy), (400, NotifyRefused)])
@asynchronous
async def test_a_webhook_that_fails_is_tried_again_only_if_it_may_help(
    server: MessengerServer, status: int, kind: type[NotifyError]
) -> None:
    server.troubles["webhook"] = [Answer(status=status, document="")]
    async with client() as opened:
        with pytest.raises(kind):
            await Webhook(opened, secret="s").send(f"{server.url}/webhook/in", MESSAGE)


@asynchronous
async def test_apprise_carries_the_message_to_the_service_of_its_address(server: MessengerServer) -> None:
    await Apprise().send(server.apprise_url, MESSAGE)
    (message,) = server.received
    assert (message.service, message.recipient, message.text) == ("apprise", "/apprise/ops", TEXT)


@asynchronous
async def test_a_service_behind_apprise_that_fails_is_tried_again(server: MessengerServer) -> None:
    server.troubles["apprise"] = [Answer(status=500, document="")]
    with pytest.raises(NotifyBusy):
        await Apprise().send(server.apprise_url, MESSAGE)
    await Apprise().send(server.apprise_url, MESSAGE)
    assert server.texts("apprise") == [TEXT]


@asynchronous
async def test_an_address_that_apprise_does_not_know_is_refused_without_showing_it() -> None:
    with pytest.raises(NotifyRefused) as caught:
        await Apprise().send("nosuchservice://token-of-mine", MESSAGE)
    assert "token-of-mine" not in f"{caught.value} {caught.value.hint}"
