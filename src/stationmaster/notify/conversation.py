"""One HTTP request to a service, with its trouble in our words; a service's token never shows in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import httpx

from stationmaster.errors import NotifyBusy

_SERVER_TROUBLE = 500


async def post(
    client: httpx.AsyncClient,
    service: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    **body: Any,
) -> httpx.Response:
    """The service's answer, whatever it says but "later". Raises NotifyBusy; nobody knows then whether it arrived."""
    try:
        response = await client.post(url, headers=dict(headers or {}), **body)
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        # Its own words may hold the URL, and with it the token.
        raise NotifyBusy(f"{service} cannot be reached: {type(problem).__name__}") from None
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        raise NotifyBusy(f"{service} asks to come back later", retry_after_seconds=_retry_after(response))
    if response.status_code >= _SERVER_TROUBLE:
        raise NotifyBusy(f"{service} has trouble of its own: HTTP {response.status_code}")
    return response


def document_of(response: httpx.Response) -> dict[str, Any]:
    """The answer's JSON object; an empty one where it is something else."""
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds, as Telegram (`parameters.retry_after`), Discord (`retry_after`) and everybody else (a header) say."""
    document = document_of(response)
    parameters = document.get("parameters")
    told = parameters.get("retry_after") if isinstance(parameters, dict) else document.get("retry_after")
    for value in (told, response.headers.get("Retry-After")):
        try:
            seconds = float(value) if value is not None else math.nan
        except (TypeError, ValueError):
            continue
        if 0 <= seconds < math.inf:
            return seconds
    return None
