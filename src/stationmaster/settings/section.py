"""What every part of the settings is made of."""

from __future__ import annotations

import re
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)

from stationmaster.money import MicroDollars, from_dollars

Dollars = Annotated[MicroDollars, BeforeValidator(from_dollars)]
Identifier = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]  # files may hold it as a number


def checked_hours(span: str) -> str:
    """A span of the day such as 22:00-07:00. Raises ValueError for anything else."""
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", span):
        raise ValueError(f"{span!r} is not a span of hours; write one such as 22:00-07:00")
    return span


def checked_zone(name: str) -> str:
    """A time zone's name. Raises ValueError for one that is not known here."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name} is not a time zone; write one such as Europe/Berlin") from None
    return name


QuietHours = Annotated[str, AfterValidator(checked_hours)]
TimeZone = Annotated[str, AfterValidator(checked_zone)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
