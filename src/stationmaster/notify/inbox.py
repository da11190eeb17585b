"""The inbox: messages stored locally, which people read with `notify inbox`."""

from __future__ import annotations

import asyncio
from typing import Protocol

from stationmaster.notify.base import Message


class InboxRows(Protocol):
    """Where the inbox is stored."""

    def put(self, user: str, message: Message) -> None:
        """Store a message; one with the same key stays as it is."""


class Inbox:
    def __init__(self, rows: InboxRows) -> None:
        self._rows = rows

    async def send(self, recipient: str, message: Message) -> None:
        await asyncio.to_thread(self._rows.put, recipient, message)

    async def check(self, recipient: str | None) -> str:
        return "stored here"
