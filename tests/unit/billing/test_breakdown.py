"""Trained, stalled and idle time are told apart, and add up to the whole cost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.billing.breakdown import Shares, shares_of
from stationmaster.model import CostLine, Event
from stationmaster.money import MicroDollars, cost

RATE = MicroDollars(360_000)  # a hundred micro-dollars a second


def line(start: float = 0.0, end: float | None = 1_000.0) -> CostLine:
    seconds = 0.0 if end is None else end - start
    return CostLine(
        rental_label="sm-1", job_id="job", kind="gpu", rate_per_hour=RATE, started_at=start, ended_at=end,
        amount=cost(RATE, seconds), source="estimate",
    )  # fmt: skip


def told(*moments: tuple[float, str]) -> list[Event]:
    """Events at times; `over` is the end of the training."""
    return [
        Event(
            seq=number,
            job_id="job",
            job_version=number,
            kind="state" if kind == "over" else kind,
            payload={"from": "EXECUTING", "to": "FETCHING_RESULTS"} if kind == "over" else {},
            at=at,
        )
        for number, (at, kind) in enumerate(moments)
    ]


def test_time_before_and_after_the_training_is_idle() -> None:
    events = told((200, "training_started"), (900, "over"))
    assert shares_of(line(), events, now=5_000) == Shares(
        training=MicroDollars(70_000), stalled=MicroDollars(0), idle=MicroDollars(30_000), setup=MicroDollars(20_000)
    )


def test_a_stall_counts_until_it_is_cleared_or_the_training_is_over() -> None:
    events = told(
        (100, "training_started"), (200, "stall_flagged"), (300, "stall_cleared"), (700, "stall_flagged"), (900, "over")
    )
    shares = shares_of(line(), events, now=5_000)
    assert (shares.stalled, shares.training, shares.idle) == (30_000, 50_000, 20_000)


def test_a_machine_on_which_nothing_was_trained_was_idle_all_along() -> None:
    assert shares_of(line(), [], now=5_000) == Shares(idle=MicroDollars(100_000), setup=MicroDollars(100_000))


def test_only_the_time_before_the_first_training_of_a_machine_is_set_up() -> None:
    events = told((200, "training_started"), (500, "over"), (600, "training_started"), (900, "over"))
    assert shares_of(line(), events, now=5_000).setup == 20_000
    assert shares_of(line(start=300), events, now=5_000).setup == 0, "a bill that begins in the middle of a training"


def test_an_open_line_is_counted_until_now() -> None:
    shares = shares_of(line(end=None), told((50, "training_started")), now=200)
    assert (shares.idle, shares.training) == (5_000, 15_000)


kinds = st.sampled_from(["training_started", "stall_flagged", "stall_cleared", "over", "milestone"])
moments = st.lists(st.tuples(st.floats(min_value=0, max_value=2_000), kinds), max_size=12)


@given(moments, st.floats(min_value=0, max_value=1_000), st.floats(min_value=0, max_value=3_000))
def test_the_parts_are_never_negative_and_add_up_to_the_whole(
    happened: list[tuple[float, str]], start: float, length: float
) -> None:
    paid = line(start, start + length)
    shares = shares_of(paid, told(*sorted(happened)), now=10_000.0)
    assert shares.total == paid.amount
    assert min(shares.training, shares.stalled, shares.setup, shares.idle - shares.setup) >= 0
