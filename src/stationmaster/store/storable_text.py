"""Text from outside (a trainer, a provider, an operating system) made safe to store: engines refuse some characters."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa


class StorableText(sa.TypeDecorator[str]):
    """A text column for such text."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        return None if value is None else storable(value)


def storable(text: str) -> str:
    """The text with NUL and lone surrogates (how Python reads bytes that are not text) replaced by `?`.

    >>> storable("caf\\udce9 \\0 ☃")
    'caf? ? ☃'
    """
    return text if is_storable(text) else text.replace("\0", "?").encode(errors="replace").decode()


def is_storable(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
