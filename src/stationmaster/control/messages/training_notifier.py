"""Telling a person something at once, for programs that build on Stationmaster."""

from __future__ import annotations

import asyncio
import secrets
from typing import TypedDict

from stationmaster.control.messages.address_book import AddressBook
from stationmaster.control.messages.courier import Courier
from stationmaster.control.messages.notices import note_of
from stationmaster.notify.base import Priority, Rendered
from stationmaster.notify.markup import clean
from stationmaster.store.store import Store


class NotifyResult(TypedDict):
    channel: str  # telegram, discord, email, inbox, or none
    success: bool


class TrainingNotifier:
    def __init__(self, store: Store, book: AddressBook, courier: Courier) -> None:
        self._store = store
        self._book = book
        self._courier = courier

    async def notify(
        self, user_id: str, message: str, priority: str = "normal", job_id: str | None = None
    ) -> NotifyResult:
        """Tell a person now, by the first of their ways that works; it is kept in their inbox in any case.

        A person without a way gives `{none, false}` and a warning in the log. Nothing is tried again later.
        """
        now = await asyncio.to_thread(self._store.now)
        rendered = Rendered(
            key=f"{self._store.installation_id}.call.{secrets.token_hex(8)}",
            kind="message",
            text=clean(message),
            at=now,
            priority=Priority(priority),
            job_id=job_id,
            more=f"More: stationmaster show {job_id}" if job_id else "More: stationmaster notify inbox",
        )
        await asyncio.to_thread(self._store.inbox.put, user_id, note_of(rendered))
        recipient = await asyncio.to_thread(self._book.owner, user_id)
        delivery = await self._courier.deliver(recipient, rendered)
        return NotifyResult(channel=delivery.channel, success=delivery.success)
