"""JSON documents one after another in a stream that is cut anywhere, with other text between them."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

_START = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)
_NEXT_START = re.compile(r"\n[\[{]")
_SHOWN = 80


class JsonStream:
    r"""
    >>> stream = JsonStream()
    >>> [list(stream.feed(part)) for part in (b'[{"id": 1', b'}]\nerror 401\n[', b"]")]
    [[], [[{'id': 1}]], [[]]]
    >>> stream.skipped
    'error 401'
    """

    def __init__(self, most_characters: int = 2**26) -> None:
        self._decoder = json.JSONDecoder()
        self._text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._most_characters = most_characters
        self._buffer = ""
        self.skipped = ""
        """Text that was no JSON, shortened; the reader empties it."""

    def feed(self, data: bytes) -> Iterator[Any]:
        """The documents that are complete now. Only arrays and objects at the beginning of a line are documents."""
        self._buffer += self._text.decode(data)
        while (start := _START.search(self._buffer)) is not None:
            self._skip(start.end() - 1)
            try:
                document, end = self._decoder.raw_decode(self._buffer)
            except ValueError:
                following = _NEXT_START.search(self._buffer)
                if following is not None:  # another one begins: this one will never be complete
                    self._skip(following.start() + 1)
                    continue
                if len(self._buffer) > self._most_characters:
                    self._skip(len(self._buffer))
                return
            yield document
            self._buffer = self._buffer[end:]
        self._skip(self._buffer.rfind("\n") + 1)

    def _skip(self, length: int) -> None:
        text, self._buffer = self._buffer[:length].strip(), self._buffer[length:]
        self.skipped = text[:_SHOWN] or self.skipped
