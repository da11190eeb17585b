"""Words that others wrote: a trainer, a provider, an operating system. No engine takes all that may be in them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa


class Words(sa.TypeDecorator[str]):
    """A text column for them."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        return None if value is None else storable(value)


def storable(text: str) -> str:
    """The text without NUL, and without halves of characters, which is how Python reads bytes that are no text.

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
