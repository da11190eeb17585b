"""Webhooks signed as https://www.standardwebhooks.com describes; libraries exist to verify them.

`webhook-id` is the same in every try (also sent as `Idempotency-Key`); `webhook-signature` is `v1,` and the base64 of
the HMAC-SHA256 over `id.timestamp.body`. The caller decides about retries.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable

import httpx

from stationmaster.errors import ConfigInvalid, NotifyBusy, NotifyRefused
from stationmaster.notify.base import Message
from stationmaster.notify.http_post import post
from stationmaster.notify.reaching import reach

_SERVICE = "the webhook"
_RETRIED = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.CONFLICT, httpx.codes.TOO_EARLY)


class Webhook:
    def __init__(self, client: httpx.AsyncClient, *, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._secret = _bytes_of(secret)
        self._clock = clock

    async def check(self, recipient: str | None) -> str:
        """Whether its host answers: any request to the address would be a message."""
        return await reach(recipient) if recipient is not None else "set up"

    async def send(self, recipient: str, message: Message) -> None:
        body = json.dumps(payload(message), ensure_ascii=False).encode()
        timestamp = int(self._clock())
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message.key,
            "webhook-id": message.key,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._secret, message.key, timestamp, body),
        }
        response = await post(self._client, _SERVICE, recipient, headers=headers, content=body)
        if response.status_code in _RETRIED:
            raise NotifyBusy(f"{_SERVICE} could not accept the message: HTTP {response.status_code}")
        if not response.is_success:
            raise NotifyRefused(f"{_SERVICE} refused the message: HTTP {response.status_code}")


def payload(message: Message) -> dict[str, object]:
    """The JSON that a receiver gets; names are stable."""
    return {
        "id": message.key,
        "kind": message.kind,
        "priority": message.priority.value,
        "job": message.job_id,
        "title": message.title,
        "text": message.text,
        "at": message.at,
    }


def signature(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """
    >>> signature(b"key", "m-1", 1700000000, b"{}")
    'v1,H9YPPPrhrF2ChXHJLfv0Kaj7w5rCo/7qkvt4EGwL3d8='
    """
    signed = hmac.new(secret, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed.digest()).decode()}"


def _bytes_of(secret: str) -> bytes:
    """A `whsec_…` secret is base64, any other is used as it is."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise ConfigInvalid("the webhook's secret starts with whsec_, but the rest is not base64") from None
