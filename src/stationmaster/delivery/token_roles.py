"""Asks the Hub what a token may do: a token that can write is never sent to a rented machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from stationmaster.delivery.hub_calls import HubCalls, reading_answer


def only_reads(access_token: Mapping[str, Any]) -> bool:
    """Whether the token can only read; an unknown role or permission counts as writing.

    >>> only_reads({"role": "read"}), only_reads({"role": "write"}), only_reads({"role": "new"})
    (True, False, False)
    """
    role = access_token.get("role")
    if role != "fineGrained":
        return role == "read"
    granted = access_token.get("fineGrained")
    if not isinstance(granted, Mapping):
        return False
    return all(permission.endswith(".read") for permission in _permissions(granted))


def _permissions(granted: Mapping[str, Any]) -> Iterator[str]:
    for name in granted.get("global") or ():
        yield str(name)
    for scope in granted.get("scoped") or ():
        yield from (str(name) for name in scope["permissions"])


class TokenRoles:
    """Asks the Hub once per token, because of its rate limit; caches the answer for the life of the process."""

    def __init__(self, *, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._url = url
        self._transport = transport
        self._known: dict[str, bool] = {}

    async def only_reads(self, token: str) -> bool:
        """Raises DeliveryBusy while the Hub gives no answer, and DeliveryRefused for a token that it does not know."""
        digest = hashlib.sha256(token.encode()).hexdigest()
        if digest not in self._known:
            self._known[digest] = await self._ask(token)
        return self._known[digest]

    async def _ask(self, token: str) -> bool:
        calls = HubCalls(url=self._url, token=token, transport=self._transport)
        try:
            answer = await calls.ask("GET", "/api/whoami-v2")
        finally:
            await calls.close()
        with reading_answer(answer):
            return only_reads(answer.json()["auth"]["accessToken"])
