"""HTTP with the standard library: one call, tried again where that can help, never longer than it was given."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from typing import Any, Callable, Mapping, NamedTuple

#: No single answer, and no single piece of an upload, may take longer.
_TIMEOUT_SECONDS = 60.0
_PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0)
_LATER = (408, 425, 429, 500, 502, 503, 504)
_RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d+)")


class Refused(Exception):
    """The other side will not do this, however often it is asked; `status` is what it answered, if it did."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Busy(Exception):
    """The other side could not do this now; it may later."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            raise Busy("what was answered is no JSON") from None


class Web:
    """Calls with a bound on all the waiting in between; `sleep` is handed in so that nothing need be waited for."""

    def __init__(self, *, patience_seconds: float = 120.0, sleep: Callable[[float], None] = time.sleep) -> None:
        self._patience_seconds = patience_seconds
        self._sleep = sleep

    def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: Callable[[], Any] | None = None,
        fine: tuple[int, ...] = (),
    ) -> Answer:
        """The answer of a call that worked or ended with a status in `fine`. Raises Refused or Busy.

        `body` makes the body anew for each try: bytes, or an open file with a Content-Length in the headers.
        """
        tries = 0
        while True:
            try:
                return _once(method, url, headers, body, fine)
            except Busy as problem:
                pause = problem.retry_after_seconds
                if pause is None:
                    pause = _PAUSES_SECONDS[min(tries, len(_PAUSES_SECONDS) - 1)]
                tries += 1
                if tries > len(_PAUSES_SECONDS) or pause > self._patience_seconds:
                    raise
                self._patience_seconds -= pause
                self._sleep(pause)


def _once(
    method: str, url: str, headers: Mapping[str, str], body: Callable[[], Any] | None, fine: tuple[int, ...]
) -> Answer:
    data = body() if body is not None else None
    request = urllib.request.Request(url, data=data, headers=dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            return Answer(answer.status, _lower(answer.headers), answer.read())
    except urllib.error.HTTPError as error:
        with error:
            found = Answer(error.code, _lower(error.headers), _read_some(error))
        return _judged(found, method, url, fine)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise Busy("%s %s: %s" % (method, _place(url), why)) from error
    finally:
        if data is not None and hasattr(data, "close"):
            data.close()


def _judged(found: Answer, method: str, url: str, fine: tuple[int, ...]) -> Answer:
    if found.status in fine:
        return found
    said = "%s %s answered %d%s" % (method, _place(url), found.status, _words(found))
    if found.status in _LATER:
        raise Busy(said, retry_after_seconds=_retry_after(found.headers))
    raise Refused(said, status=found.status)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """How long to stay away, from either of the two headers that say it."""
    plain = headers.get("retry-after", "")
    if plain.isdigit():
        return float(plain)
    found = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    return float(found.group(1)) if found else None


def _words(found: Answer) -> str:
    """What the other side says of its refusal, in one short line."""
    said = found.headers.get("x-error-message", "")
    if not said:
        try:
            said = str(json.loads(found.body).get("error", ""))
        except (ValueError, AttributeError):
            return ""
    return ": %s" % " ".join(said.split())[:200] if said else ""


def _place(url: str) -> str:
    """A link without its query, which may hold a signature."""
    return url.partition("?")[0]


def _lower(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _read_some(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(10_000)
    except (OSError, http.client.HTTPException):
        return b""
