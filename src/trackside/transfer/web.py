"""HTTP with the standard library: one call with retries, within a limit on the time spent waiting."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from typing import Any, Callable, Mapping, NamedTuple

#: Timeout of a single answer, and of a single piece of an upload.
_TIMEOUT_SECONDS = 60.0
_PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0)
_LATER = (408, 425, 429, 500, 502, 503, 504)
_RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d+)")


class Refused(Exception):
    """The server refuses this for every retry; `status` is its HTTP status, if it answered."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Busy(Exception):
    """The server cannot do this now; a retry may work."""

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
            raise Busy("the answer is not JSON") from None


class Web:
    """Makes calls with a limit on all pauses between retries; tests pass their own `sleep`."""

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
        """Return the answer if the call succeeded or its status is in `fine`. Raises Refused or Busy.

        `body` makes a new body for each try: bytes, or an open file with a Content-Length in the headers.
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
        return _check_status(found, method, url, fine)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise Busy("%s %s: %s" % (method, _without_query(url), why)) from error
    finally:
        if data is not None and hasattr(data, "close"):
            data.close()


def _check_status(found: Answer, method: str, url: str, fine: tuple[int, ...]) -> Answer:
    if found.status in fine:
        return found
    message = "%s %s answered %d%s" % (method, _without_query(url), found.status, _message(found))
    if found.status in _LATER:
        raise Busy(message, retry_after_seconds=_retry_after(found.headers))
    raise Refused(message, status=found.status)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from either of the two headers that have them."""
    plain = headers.get("retry-after", "")
    if plain.isdigit():
        return float(plain)
    found = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    return float(found.group(1)) if found else None


def _message(found: Answer) -> str:
    """Return the server's error message as one short line."""
    message = found.headers.get("x-error-message", "")
    if not message:
        try:
            said = json.loads(found.body)
            message = str(said.get("detail") or said.get("error") or "")
        except (ValueError, AttributeError):
            return ""
    return ": %s" % " ".join(message.split())[:200] if message else ""


def _without_query(url: str) -> str:
    """Return an address without its query, which may hold a signature."""
    return url.partition("?")[0]


def _lower(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _read_some(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(10_000)
    except (OSError, http.client.HTTPException):
        return b""
