"""An enum whose stored values newer code may extend."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class OpenEnum(StrEnum):
    """Reads and shows values that newer code wrote; no table here has them, so the code does nothing with them."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str) or not value:
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown
