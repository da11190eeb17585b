"""Discord direct messages, through a bot: https://discord.com/developers/docs/resources/message#create-message"""

from __future__ import annotations

import hashlib

import httpx

from stationmaster import __version__
from stationmaster.errors import NotifyRefused
from stationmaster.notify.base import Message
from stationmaster.notify.http_post import get, json_object, post
from stationmaster.notify.markup import as_markdown

_LIMIT = 2000
_NONCE_CHARACTERS = 25
_SERVICE = "Discord"


class Discord:
    def __init__(self, client: httpx.AsyncClient, *, token: str, base_url: str) -> None:
        self._client = client
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": f"DiscordBot (stationmaster, {__version__})"}
        self._channels: dict[str, str] = {}

    async def send(self, recipient: str, message: Message) -> None:
        """A retry within some minutes is delivered once: Discord recognizes the message by its nonce."""
        channel = self._channels.get(recipient)
        if channel is None:
            opened = await self._post("/users/@me/channels", {"recipient_id": recipient})
            channel = self._channels[recipient] = str(opened["id"])
        body = {
            "content": as_markdown(message, limit=_LIMIT),
            "allowed_mentions": {"parse": []},  # a name like @everyone mentions no one
            "nonce": hashlib.sha256(message.key.encode()).hexdigest()[:_NONCE_CHARACTERS],
            "enforce_nonce": True,
        }
        await self._post(f"/channels/{channel}/messages", body)

    async def check(self, recipient: str | None) -> str:
        """Whether the person shares a server with the bot shows only when a message is sent."""
        response = await get(self._client, _SERVICE, f"{self._base_url}/users/@me", headers=self._headers)
        document = json_object(response)
        if response.is_success and "id" in document:
            return f"bot {document.get('username')}"
        refusal = document.get("message") or f"HTTP {response.status_code}"
        raise NotifyRefused(f"Discord refused: {refusal}", hint=_hint(response.status_code))

    async def _post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        response = await post(self._client, _SERVICE, f"{self._base_url}{path}", headers=self._headers, json=body)
        document = json_object(response)
        if response.is_success and "id" in document:
            return document
        refusal = document.get("message") or f"HTTP {response.status_code}"
        raise NotifyRefused(f"Discord refused the message: {refusal}", hint=_hint(response.status_code))


def _hint(status: int) -> str | None:
    if status == httpx.codes.UNAUTHORIZED:
        return "check notify.discord_bot_token"
    if status == httpx.codes.FORBIDDEN:
        return "the person must share a server with the bot and allow direct messages"
    return None
