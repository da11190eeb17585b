"""What a token of the Hub may do, by the Hub's own word: one that may write does not go to somebody else's machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from stationmaster.delivery.hub_calls import HubCalls, understanding


def only_reads(access_token: Mapping[str, Any]) -> bool:
    """Whether it can change nothing on the Hub; what is not known to be reading counts as more than that.

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
    """Asks the Hub once for each token, which it is strict about; the answer is kept for the life of the process."""

    def __init__(self, *, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._url = url
        self._transport = transport
        self._known: dict[str, bool] = {}

    async def only_reads(self, token: str) -> bool:
        """Raises DeliveryBusy while nobody knows, and DeliveryRefused for a token that the Hub does not know."""
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
        with understanding(answer):
            return only_reads(answer.json()["auth"]["accessToken"])
