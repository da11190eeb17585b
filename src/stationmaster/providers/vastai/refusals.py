"""Converts Vast.ai's error bodies, in all their shapes, to our exceptions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.durations import format_duration
from stationmaster.errors import AccessRefused, NoCapacity, ProviderBusy, ProviderError, ProviderFault
from stationmaster.http_answers import read_json
from stationmaster.providers.vastai.bounds import contract_id

_LONGEST_MESSAGE = 300
_LONGEST_CODE = 100
_READ_OF_BODY = 2000  # characters in which the message must be
_LONGEST_WAIT_SECONDS = 86400.0  # the daily quota resets by then
_KEY_HINT = "check VASTAI_API_KEY against the keys at https://cloud.vast.ai/manage-keys/"
_CREDIT_HINT = "add credit at https://cloud.vast.ai/billing/"
_LIMIT_HINT = "another program may be using the same account; try again in a minute"
_CREDIT_CODES = {"insufficient_credit", "missing_billing", "spend_rate_limit"}
_QUOTA_CODE = "search_quota_exceeded"
_GONE_CODES = {"no_such_instance", "not_found"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal; the service may omit any part of it."""

    status: int
    code: str
    message: str
    new_contract: int | None = None
    retry_after_seconds: float | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the service states that the instance does not exist; any other 404 means something else."""
        return self.status == 404 and self.code in _GONE_CODES

    @property
    def is_busy(self) -> bool:
        return self.status == 429 or self.code in ("rate_limit_exceeded", _QUOTA_CODE)

    @property
    def is_quota(self) -> bool:
        """The account's daily search quota is used up: waiting does not help."""
        return self.code == _QUOTA_CODE

    @property
    def is_key_refused(self) -> bool:
        # A bad key is 401 or 404, no key 403, and an expired session 404: only the text distinguishes them.
        message = self.message.lower()
        phrases = ("invalid user key", "requires login", "session expired")
        return self.status in (401, 403) or self.code == "auth_error" or any(phrase in message for phrase in phrases)

    @property
    def is_offer_gone(self) -> bool:
        # 404 with `invalid_args`, 410 and 400 with `no_such_ask` were all seen. A refused bid counts too.
        return "no_such_ask" in f"{self.code} {self.message}" or self.code == "invalid_price"


def read_refusal(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, secret: str = ""
) -> Refusal | None:
    """The refusal in an answer; None for a success. A 200 with `success: false` is a refusal too."""
    document = _object(body)
    if 200 <= status < 300 and document.get("success") is not False:
        return None
    message = _message(document, body)
    return Refusal(
        status=status,
        code=_plain(document.get("error"))[:_LONGEST_CODE],
        message=message.replace(secret, "…") if secret else message,
        new_contract=contract_id(document.get("new_contract")),
        retry_after_seconds=_retry_after(document, headers, message, now=now),
    )


def error_of(refusal: Refusal, *, doing: str) -> ProviderError:
    """The exception for a refusal; `doing` describes the request."""
    message = f"Vast.ai did not {doing}: {refusal.message or refusal.code or f'HTTP {refusal.status}'}"
    if refusal.is_busy:
        hint = _quota_hint(refusal) if refusal.is_quota else _LIMIT_HINT
        return ProviderBusy(message, retry_after_seconds=refusal.retry_after_seconds, hint=hint)
    if refusal.code == "deprecated_endpoint":
        return ProviderFault(
            message, hint="update Stationmaster: this version calls an endpoint that Vast.ai has removed"
        )
    if refusal.code in _CREDIT_CODES:
        return AccessRefused(message, hint=_CREDIT_HINT)
    if refusal.is_key_refused:
        return AccessRefused(message, hint=_KEY_HINT)
    if refusal.is_offer_gone:
        return NoCapacity(message)
    if refusal.status >= 500:
        return ProviderBusy(message, retry_after_seconds=refusal.retry_after_seconds)
    return ProviderError(message)


def _quota_hint(refusal: Refusal) -> str:
    seconds = refusal.retry_after_seconds
    when = "" if seconds is None else f", in {format_duration(seconds)}"
    return f"the account's daily search quota is used up; it resets at 00:00 UTC{when}"


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = read_json(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _message(document: Mapping[str, Any], body: bytes) -> str:
    """`msg`, `message`, `detail`, or the text of the body, as one line without markup."""
    stated = (_plain(document.get(name)) for name in ("msg", "message", "detail", "error"))
    text = next((text for text in stated if text), None) or body[:_READ_OF_BODY].decode("utf-8", "replace")
    plain = re.sub(r"<[^<>]*>", " ", text[:_READ_OF_BODY])
    return " ".join(plain.split())[:_LONGEST_MESSAGE]


def _plain(value: object) -> str:
    """A field as text; a list of problems as JSON."""
    if value is None or value is False:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except RecursionError:
        return ""


def _retry_after(document: Mapping[str, Any], headers: Mapping[str, str], message: str, *, now: float) -> float | None:
    """Seconds to wait: from an undocumented header, a field of the body, or the reset time of the daily quota."""
    reset = _seconds(headers.get("x-ratelimit-reset"))
    candidates = (
        _seconds(headers.get("retry-after")),
        _seconds(document.get("retry_after")),
        None if reset is None else max(0.0, reset - now),
        _threshold(message),
    )
    asked = next((seconds for seconds in candidates if seconds is not None), None)
    return None if asked is None else min(asked, _LONGEST_WAIT_SECONDS)


def _threshold(message: str) -> float | None:
    """`API requests too frequent endpoint threshold=4.5` contains the minimum interval."""
    found = re.search(r"threshold=(\d+(?:\.\d+)?)", message)
    return float(found[1]) if found else None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e12 else None
