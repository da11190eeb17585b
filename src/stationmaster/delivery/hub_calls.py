"""HTTP with the Hub: each call once, its answer or the error that it means. The token goes to the Hub alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from stationmaster.errors import DeliveryBusy, DeliveryRefused

_TIMEOUT_SECONDS = 30.0
_LATER = (408, 425, 429, 500, 502, 503, 504)
_RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d+)")


class HubCalls:
    """Calls with one token. All raise DeliveryRefused (it will not work) and DeliveryBusy (it may later)."""

    def __init__(self, *, url: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        document: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (),
    ) -> httpx.Response:
        """The Hub's answer to a call of its own, with the token."""
        return await self._call(
            method,
            f"{self.url}{path}",
            {**(headers or {}), **self._bearer},
            document=document,
            content=content,
            fine=fine,
        )

    async def ask_link(
        self, method: str, link: str, *, document: Any = None, headers: Mapping[str, str], with_token: bool = False
    ) -> httpx.Response:
        """The answer at an address that the Hub gave; the token goes along only if the address is the Hub's own."""
        token = self._bearer if with_token and _origin(link) == _origin(self.url) else {}
        return await self._call(method, link, {**headers, **token}, document=document)

    async def put(self, link: str, content: bytes, *, headers: Mapping[str, str]) -> httpx.Response:
        """What an address of a store of files answers, whatever it is. It gets no token. Raises DeliveryBusy."""
        return await self._once("PUT", link, headers, content=content)

    @asynccontextmanager
    async def stream(self, path: str, *, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """A file of the Hub's while it comes; redirects are followed, without the token to other hosts."""
        given = {**headers, **self._bearer}
        try:
            async with self._http().stream("GET", f"{self.url}{path}", headers=given, follow_redirects=True) as answer:
                yield answer
        except httpx.HTTPError as problem:
            raise DeliveryBusy(f"the Hub: GET {path}: {_reason(problem)}") from problem

    def holds_token(self, text: str) -> bool:
        return self._token in text

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _call(
        self,
        method: str,
        link: str,
        headers: Mapping[str, str],
        *,
        document: Any = None,
        content: bytes | None = None,
        fine: tuple[int, ...] = (),
    ) -> httpx.Response:
        answer = await self._once(method, link, headers, document=document, content=content)
        if answer.status_code not in fine:
            await require_success(answer, f"{method} {self._place(link)}")
        return answer

    async def _once(
        self, method: str, link: str, headers: Mapping[str, str], *, document: Any = None, content: bytes | None = None
    ) -> httpx.Response:
        try:
            return await self._http().request(method, link, json=document, content=content, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise DeliveryBusy(f"the Hub: {method} {self._place(link)}: {_reason(problem)}") from problem

    def _place(self, link: str) -> str:
        """A link without the Hub's own address, and without its query, which may hold a signature."""
        return link.removeprefix(self.url).partition("?")[0]

    @property
    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, transport=self._transport)
        return self._client


@contextmanager
def understanding(answer: httpx.Response) -> Iterator[None]:
    """What is no answer of the Hub's, as a page of a portal on the way, says nothing about the Hub."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DeliveryBusy(f"the Hub: {answer.request.method} {answer.request.url.path} gave no answer") from problem


async def require_success(answer: httpx.Response, call: str) -> None:
    """Nothing for an answer that is a success; else the error that it means."""
    if answer.is_success:
        return
    await answer.aread()
    said = f"the Hub: {call} answered {answer.status_code}{_words(answer)}"
    if answer.status_code in _LATER:
        raise DeliveryBusy(said, retry_after_seconds=_retry_after(answer.headers))
    hint = "set HF_TOKEN to a token that may write there" if answer.status_code in (401, 403) else None
    raise DeliveryRefused(said, hint=hint)


def _words(answer: httpx.Response) -> str:
    try:
        said = answer.headers.get("x-error-message") or str(answer.json().get("error") or "")
    except (ValueError, AttributeError):
        return ""
    return f": {' '.join(said.split())[:200]}" if said else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    plain = headers.get("retry-after", "")
    if plain.isdigit():
        return float(plain)
    found = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    return float(found[1]) if found else None


def _origin(link: str) -> tuple[str, str, int | None]:
    url = httpx.URL(link)
    return url.scheme, url.host, url.port


def _reason(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
