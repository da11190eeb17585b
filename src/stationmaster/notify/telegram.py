"""Telegram, through a bot: https://core.telegram.org/bots/api#sendmessage"""

from __future__ import annotations

import httpx

from stationmaster.errors import NotifyRefused
from stationmaster.notify.base import Message
from stationmaster.notify.http_post import json_object, post
from stationmaster.notify.markup import as_html, as_plain

_LIMIT = 4096
_SERVICE = "Telegram"


class Telegram:
    def __init__(self, client: httpx.AsyncClient, *, token: str, base_url: str) -> None:
        self._client = client
        self._url = f"{base_url.rstrip('/')}/bot{token}/sendMessage"

    async def send(self, recipient: str, message: Message) -> None:
        """Telegram has no idempotency keys: after a lost answer, the retry may deliver the message twice."""
        refusal = await self._post(recipient, as_html(message, limit=_LIMIT), parse_mode="HTML")
        if refusal is not None and "parse entities" in refusal:
            refusal = await self._post(recipient, as_plain(message, limit=_LIMIT))
        if refusal is not None:
            raise NotifyRefused(f"Telegram refused the message: {refusal}", hint=_hint(refusal))

    async def _post(self, recipient: str, text: str, **options: str) -> str | None:
        """Return None if the message was accepted, else Telegram's refusal."""
        body = {"chat_id": recipient, "text": text, "link_preview_options": {"is_disabled": True}, **options}
        response = await post(self._client, _SERVICE, self._url, json=body)
        document = json_object(response)
        if response.is_success and document.get("ok") is True:
            return None
        return str(document.get("description") or f"HTTP {response.status_code}")


def _hint(refusal: str) -> str | None:
    if "chat not found" in refusal or "blocked" in refusal or "initiate" in refusal:
        return "write to the bot once (/start), and check the Telegram id"
    if "Unauthorized" in refusal or "Not Found" in refusal:
        return "check notify.telegram_bot_token"
    return None
