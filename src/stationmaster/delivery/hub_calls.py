"""HTTP calls to the Hub, without retries: the answer, or an error. The token is sent to the Hub only."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from stationmaster.errors import DeliveryBusy, DeliveryRefused
from stationmaster.http_answers import MIB, AnswerLimit, ask, complete, origin_of
from stationmaster.trusted_certificates import trusted_certificates

_TIMEOUT_SECONDS = 30.0
_ANSWER = AnswerLimit(most_bytes=8 * MIB, seconds=60.0)
_LEAST_SENT_PER_SECOND = 16 * 1024  # a slower upload is given up
_LONGEST_WAIT_SECONDS = 3600.0
_LATER = (408, 425, 429, 500, 502, 503, 504)
_RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d+)")


class HubCalls:
    """Calls with one token. All raise DeliveryRefused (a retry does not help) and DeliveryBusy (it may)."""

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
        """Call the Hub's API with the token."""
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
        """Call a URL that the Hub gave; the token is sent only if the URL has the Hub's own origin."""
        self._require_encrypted(link)
        token = self._bearer if with_token and origin_of(link) == origin_of(self.url) else {}
        return await self._call(method, link, {**headers, **token}, document=document)

    async def put(self, link: str, content: bytes, *, headers: Mapping[str, str]) -> httpx.Response:
        """Send bytes to a storage URL, without the token; returns the answer, also a refusal. Raises DeliveryBusy."""
        self._require_encrypted(link)
        return await self._once("PUT", link, headers, content=content)

    @asynccontextmanager
    async def stream(self, path: str, *, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """Stream a file from the Hub; follows redirects, without the token to other hosts."""
        sent = {"Accept-Encoding": "identity", **headers, **self._bearer}
        try:
            async with self._http().stream("GET", f"{self.url}{path}", headers=sent, follow_redirects=True) as answer:
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
            await require_success(answer, f"{method} {self._shown(link)}")
        return answer

    async def _once(
        self, method: str, link: str, headers: Mapping[str, str], *, document: Any = None, content: bytes | None = None
    ) -> httpx.Response:
        seconds = _ANSWER.seconds + len(content or b"") / _LEAST_SENT_PER_SECOND
        limit = AnswerLimit(most_bytes=_ANSWER.most_bytes, seconds=seconds)
        options: dict[str, Any] = {"json": document, "content": content, "headers": headers}
        try:
            return await ask(self._http(), method, link, limit=limit, **options)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise DeliveryBusy(f"the Hub: {method} {self._shown(link)}: {_reason(problem)}") from problem

    def _require_encrypted(self, link: str) -> None:
        """Raise DeliveryRefused for a link that leads from an encrypted Hub to a connection that is not."""
        try:
            is_lower = origin_of(link)[0] != "https" and origin_of(self.url)[0] == "https"
        except httpx.InvalidURL:
            raise DeliveryRefused("the Hub named an invalid URL for an upload") from None
        if is_lower:
            raise DeliveryRefused("the Hub named a URL for an upload that is not https; nothing was sent there")

    def _shown(self, link: str) -> str:
        """A link without the Hub's origin and without its query, which may contain a signature."""
        return link.removeprefix(self.url).partition("?")[0]

    @property
    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=_TIMEOUT_SECONDS, transport=self._transport, verify=trusted_certificates()
            )
        return self._client


@contextmanager
def reading_answer(answer: httpx.Response) -> Iterator[None]:
    """Raise DeliveryBusy for a malformed answer: it may come from a captive portal, not from the Hub."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        request = answer.request
        raise DeliveryBusy(f"the Hub: {request.method} {request.url.path} gave an unreadable answer") from problem


async def require_success(answer: httpx.Response, call: str) -> None:
    """Raise DeliveryBusy or DeliveryRefused unless the answer is a success."""
    if answer.is_success:
        return
    answer = await complete(answer, limit=_ANSWER)
    message = f"the Hub: {call} answered {answer.status_code}{_error_text(answer)}"
    if answer.status_code in _LATER:
        raise DeliveryBusy(message, retry_after_seconds=_retry_after(answer.headers))
    hint = "set HF_TOKEN to a token with write access" if answer.status_code in (401, 403) else None
    raise DeliveryRefused(message, hint=hint)


def _error_text(answer: httpx.Response) -> str:
    try:
        text = answer.headers.get("x-error-message") or str(answer.json().get("error") or "")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f": {' '.join(text.split())[:200]}" if text else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    plain = headers.get("retry-after", "")
    found = plain if plain.isdecimal() else None
    if found is None and (limited := _RATE_LIMIT.search(headers.get("ratelimit", ""))):
        found = limited[1]
    return None if found is None else min(float(found), _LONGEST_WAIT_SECONDS)


def _reason(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
