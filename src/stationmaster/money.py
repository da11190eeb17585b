"""Money as whole micro-dollars: amounts are never added up in floating point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import NewType

MicroDollars = NewType("MicroDollars", int)

ZERO = MicroDollars(0)
LARGEST_AMOUNT = MicroDollars(10**15)
"""A larger amount is a typing error, and sums of such amounts would not fit into the store's columns."""
_MICROS = Decimal(1_000_000)
_MOST_DOLLARS = LARGEST_AMOUNT / _MICROS


def from_dollars(value: str | int | float | Decimal) -> MicroDollars:
    """A decimal amount in micro-dollars, exactly; a float is read as it prints.

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
    """The cost of `seconds` at an hourly rate, rounded half up.

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


def exact_dollars(amount: MicroDollars | None) -> str | None:
    """The amount as `from_dollars` reads it back, to the last micro-dollar.

    >>> exact_dollars(from_dollars("0.3456")), exact_dollars(None)
    ('0.3456', None)
    """
    return None if amount is None else f"{(Decimal(amount) / _MICROS).normalize():f}"


def rounded_up(amount: int, quantum: int) -> MicroDollars:
    """The next whole multiple of `quantum`.

    >>> rounded_up(101, 100), rounded_up(100, 100)
    (200, 100)
    """
    return MicroDollars(-(-amount // quantum) * quantum)


def drawn(amount: int, lots: Iterable[tuple[str, int]]) -> list[tuple[str, MicroDollars]] | None:
    """How much to take from each lot, in their order, to make up `amount`; None if they do not hold enough.

    >>> drawn(5, [("a", 3), ("b", 4)]), drawn(8, [("a", 3), ("b", 4)])
    ([('a', 3), ('b', 2)], None)
    """
    parts = []
    for name, holds in lots:
        part = min(amount, holds)
        if part > 0:
            parts.append((name, MicroDollars(part)))
            amount -= part
    return None if amount > 0 else parts


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit in which credits are shown: dollars, or points (`points_per_dollar`)."""

    points_per_dollar: int | None = None

    @property
    def quantum(self) -> int:
        """The smallest amount that is charged, in micro-dollars."""
        return 1 if self.points_per_dollar is None else 1_000_000 // self.points_per_dollar

    def read(self, text: str) -> MicroDollars:
        """Parse an amount that a user typed. Raises ValueError.

        >>> Unit().read("1.5"), Unit(10_000).read("15000")
        (1500000, 1500000)
        """
        if self.points_per_dollar is None:
            return from_dollars(text)
        try:
            points = int(text.replace("_", "").replace(",", ""))
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number of points") from None
        return from_dollars(Decimal(points) / self.points_per_dollar)

    def show(self, amount: int) -> str:
        """
        >>> Unit().show(1_500_000), Unit().show(-1), Unit(10_000).show(1_500_000)
        ('$1.50', '-$0.000001', '15,000 points')
        """
        if self.points_per_dollar is not None:
            points = Decimal(amount) * self.points_per_dollar / _MICROS
            return f"{points.normalize():,f} points"
        exact = f"{Decimal(abs(amount)) / _MICROS:f}"
        whole, _, cents = exact.partition(".")
        return f"{'-' if amount < 0 else ''}${whole}.{cents.ljust(2, '0')}"


DOLLARS = Unit()
