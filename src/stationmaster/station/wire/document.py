"""What all documents share: how times, money and numbers are written, and how pages of a list are."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from stationmaster.errors import UserError
from stationmaster.money import MicroDollars
from stationmaster.recipes.field_texts import field_texts

SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def instant(seconds: float | None) -> str | None:
    """
    >>> instant(0.5)
    '1970-01-01T00:00:00.500+00:00'
    """
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _seconds(value: Any) -> Any:
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value


def dollars(amount: MicroDollars) -> float:
    return amount / 1_000_000


def _micro_dollars(value: Any) -> Any:
    """A document is made from whole micro-dollars and read from dollars, which JSON has as a float."""
    return round(value * 1_000_000) if isinstance(value, float) else value


def number_word(value: float) -> float | str:
    """JSON has no word for nan and infinity."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _number(value: Any) -> Any:
    return SPECIAL.get(value, value) if isinstance(value, str) else value


Instant = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(instant, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Seconds since 1970; in JSON a time in UTC, as ISO 8601."""

Usd = Annotated[
    MicroDollars,
    BeforeValidator(_micro_dollars),
    PlainSerializer(dollars, when_used="json"),
    WithJsonSchema({"type": "number", "description": "US dollars, exact to a millionth."}),
]
"""Micro-dollars; in JSON dollars. Fields of this type end in `_usd`; make them from whole micro-dollars, no float."""

Number = Annotated[
    float,
    BeforeValidator(_number),
    PlainSerializer(number_word, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "enum": list(SPECIAL)}]}),
]
"""A measured number, which may be nan or infinite: in JSON then one of three words."""


_NO_NUL = r"^[^\x00]*$"  # which databases refuse

ShortText = Annotated[str, Field(max_length=200, pattern=_NO_NUL)]
"""A text of a request that names something."""

LongText = Annotated[str, Field(max_length=2000, pattern=_NO_NUL)]
"""A text of a request for people."""


class _Described(BaseModel):
    """The text below a field describes it in the API's schema."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The texts are read only for a schema: `use_attribute_docstrings` would read them at every start."""
        found = handler(core)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, text in field_texts(cls).items():
            if name in properties:
                properties[name]["description"] = text
        return found


class Document(_Described):
    """Something that the API answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RequestDocument(_Described):
    """The body of a request: an unknown field is an error, since it would not have the effect that it promises."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def checked(cls, **fields: Any) -> Self:
        """The body of a request that a client is about to send. Raises UserError for what no server accepts."""
        try:
            return cls.model_validate(fields)
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise UserError(f"{place}: {first['msg']}", hint="correct it; nothing was sent to the server") from None


Item = TypeVar("Item")


class Page(Document, Generic[Item]):
    """One page of a list."""

    items: tuple[Item, ...]
    """The items of this page."""
    next: str | None = Field(default=None, examples=[None])
    """Pass this as `after` to get the next page; null on the last one."""
