"""Addresses that get keys, tokens or signed links: https, except on this computer and on hosts that you allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from stationmaster.settings.addresses import is_loopback

if TYPE_CHECKING:
    from stationmaster.settings import Settings

KEY_ADDRESSES = (
    "server",
    "vastai.api_base_url",
    "hub.url",
    "bucket.endpoint",
    "comfydeploy.base_url",
    "serve.public_url",
    "notify.telegram_base_url",
    "notify.discord_base_url",
    "notify.operators.slack_url",
    "notify.operators.webhook_url",
)
"""Every setting that is such an address."""


def plain_addresses(settings: Settings) -> Iterator[tuple[str, str]]:
    """(setting, host) of each address that would send a key unencrypted to a host that is not allowed."""
    allowed = {host.lower() for host in settings.plain_http_hosts}
    for name in KEY_ADDRESSES:
        address = _value(settings, name)
        if address is None or not address.lower().startswith("http:") or is_loopback(address):
            continue
        host = (urlsplit(address).hostname or "").lower()
        if host not in allowed:
            yield name, host


def _value(settings: Settings, name: str) -> str | None:
    found: Any = settings
    for part in name.split("."):
        found = getattr(found, part)
    return found.get_secret_value() if isinstance(found, SecretStr) else found
