"""HTTP answers with a limit on their size and on the time until they are complete.

httpx limits only the time between two pieces of an answer, and unpacks whatever arrives: a service that sends a byte a
second holds a call open for ever, and a few megabytes of gzip become gigabytes in memory.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

MIB = 1 << 20
_GZIP = 31  # zlib's number for the gzip format
_LEAST_BYTES_PER_SECOND = 1 << 17  # a megabit: what arrives slower than this uses up the seconds of its limit
_ABOUT_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")
_MOST_DIGITS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimit:
    """`most_bytes` counts the unpacked body; `seconds` counts until its last byte has arrived.

    To these seconds those are added in which the bytes would have arrived at a slow connection's rate: a large answer
    that keeps coming is not too slow. So the answer ends at the latest after `seconds + most_bytes / rate`.
    """

    most_bytes: int
    seconds: float


class AnswerTooLarge(httpx.RemoteProtocolError):
    """The answer has more bytes than such an answer can need. An HTTPError, so that every caller handles it."""


class AnswerTooSlow(httpx.ReadTimeout):
    """The answer was not complete in time."""


async def ask(
    client: httpx.AsyncClient, method: str, url: str, *, limit: AnswerLimit, **options: Any
) -> httpx.Response:
    """Send a request; return its complete, unpacked answer. Raises httpx.HTTPError, also past the limit."""
    headers = {**(options.pop("headers", None) or {}), "Accept-Encoding": "gzip"}
    async with (
        _ending_after(limit.seconds) as timeout,
        client.stream(method, url, headers=headers, **options) as answer,
    ):
        return await _read(answer, timeout, most_bytes=limit.most_bytes)


async def complete(answer: httpx.Response, *, limit: AnswerLimit) -> httpx.Response:
    """The complete, unpacked answer of a stream that has begun. Raises httpx.HTTPError, also past the limit."""
    async with _ending_after(limit.seconds) as timeout:
        return await _read(answer, timeout, most_bytes=limit.most_bytes)


def origin_of(url: str | httpx.URL) -> tuple[str, str, int | None]:
    """Scheme, host and port: a token for one origin is not sent to another. Raises httpx.InvalidURL.

    >>> origin_of("https://hub.example/a") == origin_of("https://HUB.example:443/b")
    True
    """
    parsed = httpx.URL(url)
    return parsed.scheme, parsed.host, parsed.port


def told_at(headers: Mapping[str, str]) -> float | None:
    """The time of the service that answered, to the second; None if it does not tell.

    >>> told_at({"Date": "Thu, 01 Jan 1970 00:01:00 GMT"}), told_at({"Date": "today"})
    (60.0, None)
    """
    try:
        return parsedate_to_datetime(headers.get("Date", "")).timestamp()
    except (ValueError, OverflowError):
        return None


def read_json(body: bytes) -> Any:
    """The JSON document of an answer. Raises ValueError, also for nesting that is too deep.

    NaN, infinity and numbers of absurd length become None: one bad number must not hide the rest of a document.

    >>> read_json(b'{"price": NaN, "id": 7}')
    {'price': None, 'id': 7}
    """
    try:
        return _loads(body)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


@asynccontextmanager
async def _ending_after(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    began = asyncio.get_running_loop().time()
    timeout = asyncio.timeout_at(began + seconds)
    try:
        async with timeout:
            yield timeout
    except TimeoutError:
        raise AnswerTooSlow(f"no complete answer within {round(_end_of(timeout) - began, 1):g} s") from None


def _end_of(timeout: asyncio.Timeout) -> float:
    ends = timeout.when()
    assert ends is not None
    return ends


async def _read(answer: httpx.Response, timeout: asyncio.Timeout, *, most_bytes: int) -> httpx.Response:
    if answer.is_stream_consumed:  # by a transport without a network
        body = _Body(None, most_bytes)
        body.add(answer.content)
    else:
        body = _Body(answer.headers.get("content-encoding"), most_bytes)
        async for chunk in answer.aiter_raw():
            body.add(chunk)
            timeout.reschedule(_end_of(timeout) + len(chunk) / _LEAST_BYTES_PER_SECOND)
    headers = [(name, value) for name, value in answer.headers.multi_items() if name not in _ABOUT_THE_TRANSFER]
    return httpx.Response(answer.status_code, headers=headers, content=body.content, request=answer.request)


def _loads(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_nothing)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # Python refuses to read thousands of digits
        return json.loads(body, parse_constant=_nothing, parse_int=_whole_number)


def _nothing(_: str) -> None:
    return None


def _whole_number(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MOST_DIGITS else None


class _Body:
    """A body that is unpacked while it arrives, never further than the limit."""

    def __init__(self, encoding: str | None, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._received = 0
        self._content = bytearray()
        self._unpack = None
        match (encoding or "identity").strip().lower():
            case "identity":
                pass
            case "gzip" | "x-gzip":
                self._unpack = zlib.decompressobj(_GZIP)
            case other:
                raise httpx.DecodingError(f"the answer is packed as {other[:40]!r}, which was not asked for")

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    def add(self, chunk: bytes) -> None:
        self._received += len(chunk)  # packed bytes count as well: they may unpack to nothing
        self._content += chunk if self._unpack is None else self._unpacked(chunk)
        if max(self._received, len(self._content)) > self._most_bytes:
            raise AnswerTooLarge(f"the answer has more than {_shown_bytes(self._most_bytes)}")

    def _unpacked(self, chunk: bytes) -> bytes:
        assert self._unpack is not None
        room = self._most_bytes - len(self._content) + 1  # one more shows that it is too large
        try:
            return self._unpack.decompress(chunk, room)
        except zlib.error:
            raise httpx.DecodingError("the answer is not valid gzip") from None


def _shown_bytes(count: int) -> str:
    """
    >>> _shown_bytes(4 * MIB), _shown_bytes(5000)
    ('4 MiB', '5000 bytes')
    """
    return f"{count // MIB} MiB" if count >= MIB and count % MIB == 0 else f"{count} bytes"
