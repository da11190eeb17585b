"""Sending a test message through every channel that reaches a person."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from stationmaster.control.messages.messaging import Messaging, open_messaging
from stationmaster.control.messages.recipients import Recipient
from stationmaster.errors import NotifyRefused
from stationmaster.model import Delivery
from stationmaster.notify.base import Message
from stationmaster.notify.markup import clean
from stationmaster.station.local.installation import Installation
from stationmaster.store.store import Store


async def try_channels(installation: Installation, user: str, text: str) -> list[Delivery]:
    """Raises NotifyRefused where no channel leads to the user."""
    async with _open_messaging(installation) as messaging:
        recipient = messaging.recipients.owner(user)
        if not recipient.routes:
            raise NotifyRefused(
                f"No notification channel for user {user}",
                hint=f"add one: stationmaster users set {user} --telegram-id …, and set the bot's token",
            )
        return await _try_each(messaging, [recipient], _message(text, installation.store))


async def try_operator_channels(installation: Installation, text: str) -> list[Delivery]:
    async with _open_messaging(installation) as messaging:
        return await _try_each(messaging, messaging.recipients.operators(), _message(text, installation.store))


@asynccontextmanager
async def _open_messaging(installation: Installation) -> AsyncIterator[Messaging]:
    messaging = open_messaging(installation.settings, installation.store)
    try:
        yield messaging
    finally:
        await messaging.close()


def _message(text: str, store: Store) -> Message:
    key = f"{store.installation_id}.test.{secrets.token_hex(8)}"
    return Message(key=key, kind="message", text=clean(text), at=store.now())


async def _try_each(messaging: Messaging, recipients: Iterable[Recipient], message: Message) -> list[Delivery]:
    return [each for one in recipients for each in await messaging.sender.send_through_each(one, message)]
