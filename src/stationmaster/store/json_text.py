"""JSON of the database's columns, by pydantic's own reader and writer: several times as fast as Python's.

They refuse some of what Python's `json` takes and what trainers and machines do send; then it is used.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json, to_json

_in_ascii = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def dumps(value: Any) -> str:
    """The value as JSON that every engine can store.

    >>> dumps({"name": "Café", "loss": 0.25})
    '{"name":"Café","loss":0.25}'
    >>> dumps(["caf\\udce9"])
    '["caf\\\\udce9"]'
    """
    try:
        return to_json(value).decode()
    except ValueError:  # a lone surrogate: how Python reads bytes that are not text
        return _in_ascii(value)


def loads(text: str) -> Any:
    """The value of a column. Raises ValueError if it is no JSON.

    >>> loads('["caf\\\\udce9"]') == ["caf\\udce9"]
    True
    """
    try:
        return from_json(text)
    except ValueError:  # the same, or nested very deeply
        return json.loads(text)
