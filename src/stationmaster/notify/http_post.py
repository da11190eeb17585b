"""One HTTP request to a service, with errors that never contain the service's token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import httpx

from stationmaster.errors import NotifyBusy
from stationmaster.http_answers import MIB, AnswerLimit, AnswerTooLarge, AnswerTooSlow, ask, read_json

_SERVER_ERRORS = 500
_ANSWER = AnswerLimit(most_bytes=MIB, seconds=20.0)
_LONGEST_WAIT_SECONDS = 86400.0


async def post(
    client: httpx.AsyncClient,
    service: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    **body: Any,
) -> httpx.Response:
    """Return the answer. Raises NotifyBusy for 429, 5xx and no answer: then the message may or may not have arrived."""
    return await _exchange(client, service, "POST", url, headers=headers, **body)


async def get(
    client: httpx.AsyncClient, service: str, url: str, *, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """Return the answer. Raises NotifyBusy for 429, 5xx and no answer."""
    return await _exchange(client, service, "GET", url, headers=headers)


async def _exchange(
    client: httpx.AsyncClient, service: str, method: str, url: str, *, headers: Mapping[str, str] | None, **body: Any
) -> httpx.Response:
    try:
        response = await ask(client, method, url, limit=_ANSWER, headers=dict(headers or {}), **body)
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        # The text of httpx's exceptions may contain the URL, and with it the token.
        reason = str(problem) if isinstance(problem, AnswerTooLarge | AnswerTooSlow) else type(problem).__name__
        raise NotifyBusy(f"{service} cannot be reached: {reason}") from None
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        raise NotifyBusy(f"{service} asks to retry later", retry_after_seconds=_retry_after(response))
    if response.status_code >= _SERVER_ERRORS:
        raise NotifyBusy(f"{service} failed: HTTP {response.status_code}")
    return response


def json_object(response: httpx.Response) -> dict[str, Any]:
    """The answer's JSON object; empty if the answer is anything else."""
    try:
        value = read_json(response.content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds from `parameters.retry_after` (Telegram), `retry_after` (Discord) or the header `Retry-After`."""
    document = json_object(response)
    parameters = document.get("parameters")
    given = parameters.get("retry_after") if isinstance(parameters, dict) else document.get("retry_after")
    for value in (given, response.headers.get("Retry-After")):
        try:
            seconds = float(value) if value is not None else math.nan
        except (TypeError, ValueError, OverflowError):
            continue
        if 0 <= seconds < math.inf:
            return min(seconds, _LONGEST_WAIT_SECONDS)
    return None
