"""The base class of all sections, and field types that several sections use."""

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
from stationmaster.settings.addresses import checked_text, resolve_user

Dollars = Annotated[MicroDollars, BeforeValidator(from_dollars)]


def checked_hours(span: str) -> str:
    """Return a span of hours such as 22:00-07:00. Raises ValueError for anything else."""
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", span):
        raise ValueError(f"{span!r} is not a span of hours; write one such as 22:00-07:00")
    if span[:5] == span[6:]:
        raise ValueError(f"{span!r} is an empty span of hours; write one such as 22:00-07:00")
    return span


def checked_zone(name: str) -> str:
    """Return a time zone's name. Raises ValueError if this computer does not know it."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name} is not a time zone; write one such as Europe/Berlin") from None
    return name


QuietHours = Annotated[str, AfterValidator(checked_hours)]
TimeZone = Annotated[str, AfterValidator(checked_zone)]


def section_of_defaults() -> Any:
    """The default of a section: an empty table, which the validator of the whole settings fills.

    An instance as default would build a validator per section at every start of the program.
    """
    return Field(default_factory=dict, validate_default=True)


class Section(BaseModel):
    """A part of the settings. The text below each field is its meaning, which the reference page shows."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @field_validator("*")
    @classmethod
    def _usable(cls, value: Any) -> Any:
        """Check text and resolve the `~` of paths, in every field."""
        match value:
            case str():
                return checked_text(value)
            case SecretStr():
                checked_text(value.get_secret_value())
            case Path():
                return resolve_user(Path(checked_text(str(value))))
            case tuple() if any(isinstance(each, str | SecretStr | Path) for each in value):
                return tuple(cls._usable(each) for each in value)
        return value
