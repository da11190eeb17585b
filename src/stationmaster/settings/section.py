"""What every part of the settings is made of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
)

from stationmaster.money import MicroDollars, from_dollars
from stationmaster.settings.addresses import checked_text, known_person

Dollars = Annotated[MicroDollars, BeforeValidator(from_dollars)]


def checked_hours(span: str) -> str:
    """A span of the day such as 22:00-07:00. Raises ValueError for anything else."""
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", span):
        raise ValueError(f"{span!r} is not a span of hours; write one such as 22:00-07:00")
    if span[:5] == span[6:]:
        raise ValueError(f"{span!r} is an empty span of hours; write one such as 22:00-07:00")
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


def section_of_defaults() -> Any:
    """The default of a section: an empty table, which the validator of the whole settings fills.

    An instance would need a validator of its own for each section, at every start of the program.
    """
    return Field(default_factory=dict, validate_default=True)


class Section(BaseModel):
    """Part of the settings. The text beneath each field is its meaning, from which the reference page is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @field_validator("*")
    @classmethod
    def _usable(cls, value: Any) -> Any:
        """Text that is text, and paths whose `~` is somebody's."""
        match value:
            case str():
                return checked_text(value)
            case SecretStr():
                checked_text(value.get_secret_value())
            case Path():
                return known_person(Path(checked_text(str(value))))
            case tuple() if any(isinstance(each, str | SecretStr | Path) for each in value):
                return tuple(cls._usable(each) for each in value)
        return value
