"""Values that other programs named and filled (parameters, payloads of events), as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stationmaster.station.wire.document import SPECIAL, number_word


def plain(value: Any) -> Any:
    """The value with lists for tuples, and words for the numbers that JSON lacks.

    >>> plain({"losses": (0.5, float("nan"))})
    {'losses': [0.5, 'NaN']}
    """
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, float):
        return number_word(value)
    if isinstance(value, Mapping):
        return {_encodable(str(name)): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def unplain(value: Any) -> Any:
    """The value that `plain` was given, with lists for tuples.

    >>> unplain({"losses": [0.5, "NaN"]})
    {'losses': [0.5, nan]}
    """
    if isinstance(value, str):
        return SPECIAL.get(value, value)
    if isinstance(value, Mapping):
        return {name: unplain(each) for name, each in value.items()}
    return [unplain(each) for each in value] if isinstance(value, list | tuple) else value


def _encodable(text: str) -> str:
    """The text with a sign for each half of a character: JSON is UTF-8, which has no halves.

    >>> _encodable("a\\ud800b")
    'a?b'
    """
    return text.encode(errors="replace").decode()
