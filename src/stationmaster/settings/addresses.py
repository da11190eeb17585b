"""Checks of URLs, keys and user IDs in settings.

They refuse here what a service would refuse later (an impossible port, a key with a stray character). The messages
never repeat the value, which may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

_EMAIL = re.compile("[{0}]{{1,64}}@[{0}]{{1,255}}".format(r"^\s@<>,;\"\x00-\x1f\x7f-\x9f\ud800-\udfff"))
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def checked_url(value: str) -> str:
    """Return a web address. Raises ValueError if no client could use it.

    >>> checked_url("https://example.com:8443/hook?x=1")
    'https://example.com:8443/hook?x=1'
    """
    if not _is_web_address(value):
        raise ValueError("must be a web address, such as https://example.com")
    return value


def checked_base_url(value: str) -> str:
    """Return a web address to which paths can be appended. Raises ValueError for anything else."""
    if not _is_web_address(value) or "?" in value or "#" in value:
        raise ValueError("must be a web address without ? and #, such as https://example.com/api")
    return value


def checked_server_url(value: str) -> str:
    """Return the address of a server. Raises ValueError for anything else, and for one that contains a token."""
    if "@" in value:
        raise ValueError("must be an address without user and token; set STATIONMASTER_TOKEN to the token")
    return checked_base_url(value)


def checked_token(value: SecretStr) -> SecretStr:
    """Return a key or token, stripped. Raises ValueError unless it is printable ASCII without spaces."""
    secret = value.get_secret_value().strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ValueError("must be printable ASCII without spaces; check that you copied all of it and nothing else")
    return SecretStr(secret)


def checked_email(value: str) -> str:
    """Return an e-mail address. Raises ValueError for anything else."""
    if not _EMAIL.fullmatch(value):
        raise ValueError("is not an e-mail address; write one such as ann@example.com")
    return value


def checked_telegram_id(value: str) -> str:
    """Return a Telegram chat's number or a channel's @name. Raises ValueError for anything else."""
    if not re.fullmatch(r"-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,31}", value):
        raise ValueError("is not a Telegram chat; write its number, such as 123456789")
    return value


def checked_discord_id(value: str) -> str:
    """Return a Discord user ID. Raises ValueError for anything else."""
    if not re.fullmatch(r"[0-9]{1,20}", value):
        raise ValueError("is not a Discord user ID; write a number such as 80351110224678912")
    return value


def checked_text(value: str) -> str:
    """Return text that can be stored and printed. Raises ValueError for a lone surrogate or a zero byte."""
    if _NO_TEXT.search(value):
        raise ValueError("contains characters that are not valid text")
    return value


def texts_in(data: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """(dotted name, text) of every name and text in plain data.

    >>> list(texts_in({"a": ["x"]}))
    [('a', 'a'), ('a', 'x')]
    """
    if isinstance(data, str):
        yield place, data
    elif isinstance(data, dict):
        for name, value in data.items():
            inner = f"{place}.{name}" if place else str(name)
            yield inner, str(name)
            yield from texts_in(value, inner)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from texts_in(value, place)


def resolve_user(path: Path) -> Path:
    """Return the path with its `~` resolved. Raises ValueError if `~name` is an unknown user."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError(f"{path} names an unknown user") from None


def is_host(name: str) -> bool:
    """Whether this can be a host name or IP address.

    >>> is_host("example.com"), is_host("::1"), is_host("a..b"), is_host("")
    (True, True, False, False)
    """
    try:
        if not name.isascii():
            name.encode("idna")
    except ValueError:
        return False
    labels = name.removesuffix(".").split(".")
    return all(0 < len(label) <= 63 for label in labels) and not _BLANK.search(name)


def is_loopback(url: str) -> bool:
    """Whether a web address is one of this computer.

    >>> is_loopback("http://127.0.0.1:8080"), is_loopback("http://[::1]"), is_loopback("http://localhost.example.com")
    (True, True, False)
    """
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """Whether only this computer is reached by a host name or IP address.

    >>> [is_loopback_host(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0")]
    [True, True, True, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        port = parts.port  # raises ValueError for an impossible port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and is_host(host) and port != 0 and not _BLANK.search(value)


def _as_text(value: object) -> object:
    """A config file may contain a number where text is expected."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


BaseUrl = Annotated[str, AfterValidator(checked_base_url)]
ServerUrl = Annotated[str, AfterValidator(checked_server_url)]
WebAddress = Annotated[str, AfterValidator(checked_url)]
SecretAddress = Annotated[SecretStr, AfterValidator(lambda value: SecretStr(checked_url(value.get_secret_value())))]
Token = Annotated[SecretStr, AfterValidator(checked_token)]
EmailAddress = Annotated[str, AfterValidator(checked_email)]
TelegramId = Annotated[str, BeforeValidator(_as_text), AfterValidator(checked_telegram_id)]
DiscordId = Annotated[str, BeforeValidator(_as_text), AfterValidator(checked_discord_id)]
