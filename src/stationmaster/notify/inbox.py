"""The inbox: messages kept at home for people who look for them."""

from __future__ import annotations

import asyncio

from stationmaster.notify.base import InboxRows, Rendered


class Inbox:
    def __init__(self, rows: InboxRows) -> None:
        self._rows = rows

    async def send(self, recipient: str, message: Rendered) -> None:
        await asyncio.to_thread(self._rows.put, recipient, message)
