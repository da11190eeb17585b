"""Sends a message to a person at once, through the channels that are set up."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import TypedDict

from stationmaster.config import load_settings
from stationmaster.control.messages.composer import inbox_note
from stationmaster.control.messages.messaging import Messaging, open_messaging
from stationmaster.control.wiring.open_store import open_store
from stationmaster.notify.base import Message, Priority
from stationmaster.notify.markup import clean
from stationmaster.store.store import Store


class NotifyResult(TypedDict):
    channel: str  # telegram, discord, email, inbox, or none
    success: bool


class TrainingNotifier:
    def __init__(self, store: Store, messaging: Messaging) -> None:
        self._store = store
        self._messaging = messaging

    @classmethod
    @asynccontextmanager
    async def open(cls, environ: Mapping[str, str]) -> AsyncIterator[TrainingNotifier]:
        """A notifier with the settings that `environ` gives, as the commands read them. Raises ConfigInvalid."""
        settings = load_settings(environ)
        with closing(await asyncio.to_thread(open_store, settings)) as store:
            messaging = open_messaging(settings, store)
            try:
                yield cls(store, messaging)
            finally:
                await messaging.close()

    async def notify(
        self, user_id: str, message: str, priority: str = "normal", job_id: str | None = None
    ) -> NotifyResult:
        """Send now, through the first of the person's channels that works, and keep a copy in their inbox.

        Returns `{none, false}` and logs a warning if the person has no channel. A failed message is not retried.
        """
        now = await asyncio.to_thread(self._store.now)
        composed = Message(
            key=f"{self._store.installation_id}.call.{secrets.token_hex(8)}",
            kind="message",
            text=clean(message),
            at=now,
            priority=Priority(priority),
            job_id=job_id,
            more=f"More: stationmaster show {job_id}" if job_id else "More: stationmaster notify inbox",
        )
        await asyncio.to_thread(self._store.inbox.put, user_id, inbox_note(composed))
        recipient = await asyncio.to_thread(self._messaging.recipients.owner, user_id)
        delivery = await self._messaging.sender.send(recipient, composed)
        return NotifyResult(channel=delivery.channel, success=delivery.success)
