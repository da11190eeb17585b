"""Slack's incoming webhooks: the address is the recipient, and a secret."""

from __future__ import annotations

import httpx

from stationmaster.errors import NotifyRefused
from stationmaster.notify.base import Message
from stationmaster.notify.http_post import post
from stationmaster.notify.markup import as_html
from stationmaster.notify.reaching import reach

_LIMIT = 3000


class Slack:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def check(self, recipient: str | None) -> str:
        """Whether its host answers: any request to the address would be a message."""
        return await reach(recipient) if recipient is not None else "set up"

    async def send(self, recipient: str, message: Message) -> None:
        # Slack needs the same three characters escaped as HTML does; the rest of its markup is off.
        body = {"text": as_html(message, limit=_LIMIT), "mrkdwn": False}
        response = await post(self._client, "Slack", recipient, json=body)
        if not response.is_success:
            refusal = response.text.strip()[:100] or f"HTTP {response.status_code}"
            raise NotifyRefused(f"Slack refused the message: {refusal}", hint="check the webhook's address")
