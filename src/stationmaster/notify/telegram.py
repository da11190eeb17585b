"""Telegram, through a bot: https://core.telegram.org/bots/api#sendmessage"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
        self._bot = f"{base_url.rstrip('/')}/bot{token}"

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
        _, refusal = await self._call("sendMessage", body)
        return refusal

    async def check(self, recipient: str | None) -> str:
        bot, refusal = await self._call("getMe", {})
        if refusal is None and recipient is not None:
            _, refusal = await self._call("getChat", {"chat_id": recipient})
        if refusal is not None:
            raise NotifyRefused(f"Telegram refused: {refusal}", hint=_hint(refusal))
        return f"bot @{bot.get('username')}" + (f" may write to chat {recipient}" if recipient is not None else "")

    async def _call(self, method: str, body: Mapping[str, object]) -> tuple[dict[str, Any], str | None]:
        """The result, and None or Telegram's refusal."""
        response = await post(self._client, _SERVICE, f"{self._bot}/{method}", json=body)
        document = json_object(response)
        if response.is_success and document.get("ok") is True:
            result = document.get("result")
            return (result if isinstance(result, dict) else {}), None
        return {}, str(document.get("description") or f"HTTP {response.status_code}")


def _hint(refusal: str) -> str | None:
    if "chat not found" in refusal or "blocked" in refusal or "initiate" in refusal:
        return "write to the bot once (/start), and check the Telegram id"
    if "Unauthorized" in refusal or "Not Found" in refusal:
        return "check notify.telegram_bot_token"
    return None
