"""Addresses, keys and names of people as settings hold them: checked once, at the door, and never repeated in words.

What a service would choke on later (a port that cannot be, a key with a letter of no key) is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

_EMAIL = re.compile("[{0}]{{1,64}}@[{0}]{{1,255}}".format(r"^\s@<>,;\"\x00-\x1f\x7f-\x9f\ud800-\udfff"))
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def checked_url(value: str) -> str:
    """A web address. Raises ValueError for what no client could ask.

    >>> checked_url("https://example.com:8443/hook?x=1")
    'https://example.com:8443/hook?x=1'
    """
    if not _is_web_address(value):
        raise ValueError("must be a web address, such as https://example.com")
    return value


def checked_base_url(value: str) -> str:
    """A web address that paths are put behind. Raises ValueError for anything else."""
    if not _is_web_address(value) or "?" in value or "#" in value:
        raise ValueError("must be a web address without ? and #, such as https://example.com/api")
    return value


def checked_token(value: SecretStr) -> SecretStr:
    """A key or token as services give them out: letters, digits and signs, without spaces."""
    secret = value.get_secret_value().strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ValueError("must be printable ASCII without spaces; was it copied whole, and nothing else?")
    return SecretStr(secret)


def checked_email(value: str) -> str:
    """An e-mail address. Raises ValueError for anything else."""
    if not _EMAIL.fullmatch(value):
        raise ValueError("is not an e-mail address; write one such as ann@example.com")
    return value


def checked_telegram_id(value: str) -> str:
    """A chat's number at Telegram, or a channel's name. Raises ValueError for anything else."""
    if not re.fullmatch(r"-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,31}", value):
        raise ValueError("is not a chat at Telegram; write its number, such as 123456789")
    return value


def checked_discord_id(value: str) -> str:
    """A person's number at Discord. Raises ValueError for anything else."""
    if not re.fullmatch(r"[0-9]{1,20}", value):
        raise ValueError("is not a person at Discord; write their number, such as 80351110224678912")
    return value


def checked_text(value: str) -> str:
    """Text that can be stored and printed. Raises ValueError where it holds half a character or a zero byte."""
    if _NO_TEXT.search(value):
        raise ValueError("holds characters that are no text")
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


def known_person(path: Path) -> Path:
    """The path with its `~` resolved. Raises ValueError where `~name` names nobody."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError(f"{path} names a person who is not known here") from None


def is_host(name: str) -> bool:
    """Whether a machine could have this name or number in a network.

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


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        port = parts.port  # says whether there can be such a port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and is_host(host) and port != 0 and not _BLANK.search(value)


def _as_text(value: object) -> object:
    """Files may hold a number where a name is meant."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


BaseUrl = Annotated[str, AfterValidator(checked_base_url)]
WebAddress = Annotated[str, AfterValidator(checked_url)]
SecretAddress = Annotated[SecretStr, AfterValidator(lambda value: SecretStr(checked_url(value.get_secret_value())))]
Token = Annotated[SecretStr, AfterValidator(checked_token)]
EmailAddress = Annotated[str, AfterValidator(checked_email)]
TelegramId = Annotated[str, BeforeValidator(_as_text), AfterValidator(checked_telegram_id)]
DiscordId = Annotated[str, BeforeValidator(_as_text), AfterValidator(checked_discord_id)]
