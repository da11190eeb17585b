"""Money: whole micro-dollars, exact at the door, never lost on the way."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.money import MicroDollars, cost, format_dollars, from_dollars

amounts = st.integers(-(10**13), 10**13).map(MicroDollars)
rates = st.integers(0, 10**9).map(MicroDollars)
times = st.integers(0, 10**7)


@given(amounts)
def test_an_amount_written_down_and_read_again_is_the_same(amount: MicroDollars) -> None:
    assert from_dollars(str(Decimal(amount) / 1_000_000)) == amount


@given(st.integers(0, 10**6), st.integers(0, 99))
def test_dollars_and_cents_are_exact_even_as_floats(dollars: int, cents: int) -> None:
    assert from_dollars(float(f"{dollars}.{cents:02d}")) == dollars * 1_000_000 + cents * 10_000


@pytest.mark.parametrize(
    "value", ["", "free", "1,50", "nan", "inf", "-inf", "$", "1 2", True, "1e30", "9" * 50, "1e999999"]
)
def test_what_is_no_amount_of_money_is_refused_in_words(value: object) -> None:
    with pytest.raises(ValueError, match="amount of money"):
        from_dollars(value)  # type: ignore[arg-type]  # what a file may hold


@given(st.text())
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        amount = from_dollars(text)
    except ValueError:
        return
    assert isinstance(amount, int)


@given(rates, times)
def test_a_cost_is_the_exact_one_rounded_half_up(rate: MicroDollars, seconds: int) -> None:
    exact = Fraction(rate * seconds, 3600)
    assert cost(rate, seconds) == (exact + Fraction(1, 2)).__floor__()


@given(rates, times, times)
def test_more_time_never_costs_less(rate: MicroDollars, some: int, more: int) -> None:
    assert cost(rate, some) <= cost(rate, some + more)


@given(rates, st.lists(times, max_size=8))
def test_pieces_cost_what_the_whole_costs_but_for_rounding(rate: MicroDollars, pieces: list[int]) -> None:
    apart = sum(cost(rate, piece) for piece in pieces)
    assert abs(apart - cost(rate, sum(pieces))) <= len(pieces)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "$0.00"), (1_500_000, "$1.50"), (5_000, "$0.01"), (4_999, "$0.00"), (-1_500_000, "-$1.50"), (-1_000, "$0.00")],
)
def test_amounts_are_shown_in_cents(amount: int, text: str) -> None:
    assert format_dollars(MicroDollars(amount)) == text


@given(amounts)
def test_what_is_shown_is_within_half_a_cent(amount: MicroDollars) -> None:
    shown = format_dollars(amount).replace("$", "")
    assert abs(Decimal(shown) * 1_000_000 - amount) <= 5_000
