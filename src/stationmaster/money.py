"""Money as whole micro-dollars: no floating point ever adds up a bill."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import NewType

MicroDollars = NewType("MicroDollars", int)

ZERO = MicroDollars(0)
_MICROS = Decimal(1_000_000)
_MOST_DOLLARS = Decimal(10**9)  # more is a slip of the finger, and would not fit into the store's columns


def from_dollars(value: str | int | float | Decimal) -> MicroDollars:
    """The exact micro-dollars of a decimal amount; a float is read as it prints.

    >>> from_dollars("0.35"), from_dollars(4.5)
    (350000, 4500000)
    """
    try:
        amount = Decimal(str(value).strip().removeprefix("$"))
    except InvalidOperation:
        raise ValueError(f"{value!r} is not an amount of money") from None
    if not amount.is_finite() or abs(amount) > _MOST_DOLLARS:
        raise ValueError(f"{value!r} is not an amount of money")
    return MicroDollars(int((amount * _MICROS).to_integral_value(ROUND_HALF_UP)))


def cost(rate_per_hour: MicroDollars, seconds: float) -> MicroDollars:
    """What `seconds` cost at an hourly rate, rounded half up.

    >>> cost(from_dollars("0.36"), 10)
    1000
    """
    exact = Decimal(rate_per_hour) * Decimal(str(seconds)) / Decimal(3600)
    return MicroDollars(int(exact.to_integral_value(ROUND_HALF_UP)))


def format_dollars(amount: MicroDollars, decimals: int = 2) -> str:
    """
    >>> format_dollars(from_dollars("1.5")), format_dollars(from_dollars("0.3456"), 3)
    ('$1.50', '$0.346')
    """
    quantum = Decimal(1).scaleb(-decimals)
    value = (Decimal(amount) / _MICROS).quantize(quantum, ROUND_HALF_UP)
    return f"-${-value}" if value < 0 else f"${abs(value)}"
