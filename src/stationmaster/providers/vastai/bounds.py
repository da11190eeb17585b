"""The types of values in Vast.ai's answers, with the bounds that each must keep.

Numbers may come as text. Booleans, NaN, infinity and values out of bounds are refused: a price of -$3.50 per hour would
win every ranking, and an instance that "starts" in the year 5000 would never bill.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, ValidationError, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from stationmaster.money import MicroDollars, exact_dollars, from_dollars

T = TypeVar("T")

MOST_PER_HOUR = from_dollars(1000)
"""More than any machine costs: eight of the dearest GPUs are below $100 per hour."""
MOST_PER_GB = from_dollars(1000)
MOST_CHARGED = from_dollars(1_000_000)
"""In one row of the charges."""
MOST_CREDIT = from_dollars(1_000_000_000)

_LARGEST_ID = 2**63 - 1
_LONGEST_TEXT = 4000  # a public key may have more than 1000
_LAST_SECOND = 4_102_444_800.0  # of the year 2099


def _or_none(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """None for an invalid value: the API's documentation and its answers disagree on many types."""
    try:
        return handler(value)
    except (ValidationError, ValueError):
        return None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("not a number of this world") from None
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _whole(value: object) -> int:
    number = _number(value)
    if not number.is_integer():
        raise ValueError("not a whole number")
    return int(value) if isinstance(value, str | int) and str(value).strip("-").isdecimal() else int(number)


def _between(least: float, most: float) -> AfterValidator:
    def check(number: float) -> float:
        if not least <= number <= most:
            raise ValueError(f"{number:g} is not between {least:g} and {most:g}")
        return number

    return AfterValidator(check)


def _dollars(value: object) -> MicroDollars:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not an amount")
    return from_dollars(value)


def _amount_between(least: int, most: int) -> AfterValidator:
    def check(amount: MicroDollars) -> MicroDollars:
        if not least <= amount <= most:
            raise ValueError(f"${exact_dollars(amount)} is not a possible amount")
        return amount

    return AfterValidator(check)


def _text(value: object) -> str | None:
    """Text that can be stored: addresses come with stray white space, and JSON can spell half a character."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    storable = str(value)[: 2 * _LONGEST_TEXT].encode("utf-8", "replace").decode().replace("\0", "")
    return storable.strip()[:_LONGEST_TEXT] or None


def contract_id(value: object) -> int | None:
    """The id of a new rental; None if it is none."""
    try:
        number = _whole(value)
    except ValueError:
        return None
    return number if 1 <= number <= _LARGEST_ID else None


Maybe = Annotated[T | None, WrapValidator(_or_none)]
Text = Annotated[str | None, BeforeValidator(_text)]

Id = Annotated[int, BeforeValidator(_whole), _between(1, _LARGEST_ID)]
Number = Annotated[float, BeforeValidator(_number), _between(-1e12, 1e12)]
Seconds = Annotated[float, BeforeValidator(_number), _between(0, 1e11)]
Time = Annotated[float, BeforeValidator(_number), _between(0, _LAST_SECOND)]
Fraction = Annotated[float, BeforeValidator(_number), _between(0, 1)]
Version = Annotated[float, BeforeValidator(_number), _between(0, 1000)]
GpuCount = Annotated[int, BeforeValidator(_whole), _between(0, 1024)]
Megabytes = Annotated[float, BeforeValidator(_number), _between(0, 1e8)]
Gigabytes = Annotated[float, BeforeValidator(_number), _between(0, 1e8)]
Count = Annotated[int, BeforeValidator(_whole), _between(0, 1e9)]
Port = Annotated[int, BeforeValidator(_whole), _between(1, 65535)]

OfferedPrice = Annotated[MicroDollars, BeforeValidator(_dollars), _amount_between(1, MOST_PER_HOUR)]
"""Per hour. Nothing is offered for nothing: an offer without a price would be quoted as free."""
Price = Annotated[MicroDollars, BeforeValidator(_dollars), _amount_between(0, MOST_PER_HOUR)]
"""Per hour, of a machine that exists or of a bid; its disk or traffic may be free."""
TrafficPrice = Annotated[MicroDollars, BeforeValidator(_dollars), _amount_between(0, MOST_PER_GB)]
"""Per GB."""
Charged = Annotated[MicroDollars, BeforeValidator(_dollars), _amount_between(0, MOST_CHARGED)]
Credit = Annotated[MicroDollars, BeforeValidator(_dollars), _amount_between(-MOST_CREDIT, MOST_CREDIT)]
"""Of an account, which may owe money."""
