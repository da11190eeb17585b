"""A budget bounds what is read at once; within it nothing is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.parsers import LogReader
from stationmaster.parsers.budget import Budget
from tests.support.watching.training_logs import NAMES, log_bytes

_LOGS = [log_bytes(name) for name in NAMES]
_logs = st.lists(st.sampled_from(_LOGS), min_size=1, max_size=3).map(b"".join)


@given(_logs)
def test_within_the_budget_nothing_is_left_out(data: bytes) -> None:
    free, bound, budget = LogReader(), LogReader(), Budget()
    assert bound.feed(data, budget=budget) == free.feed(data)
    assert bound.summary() == free.summary()
    assert not budget.is_thinned


@given(st.lists(st.one_of(_logs, st.binary(max_size=400)), max_size=4), st.integers(0, 200), st.integers(0, 20))
def test_beyond_it_the_text_can_be_anything_and_is_cut_anywhere(chunks: list[bytes], pieces: int, bars: int) -> None:
    reader, budget = LogReader(), Budget(pieces=pieces, bars=bars)
    for chunk in chunks:
        reader.feed(chunk, budget=budget)
    reader.summary()
    reader.state()


def test_of_many_different_bars_the_last_is_read() -> None:
    bars = b"".join(b"\rbar%c: 5%%|#  | %d/900 [00:10<03:10, 2.00s/it]" % (97 + n % 26, n) for n in range(1, 800))
    reader, budget = LogReader(), Budget()
    reader.feed(b"\rsteps: 5%|#  | 5/900 [00:10<03:10, 2.00s/it, loss=0.5]" + bars + b"\r", budget=budget)
    reader.feed(b"\rsteps: 5%|#  | 6/900 [00:10<03:10, 2.00s/it, loss=0.5]\r", budget=budget)
    assert reader.summary().step == 6
    assert not budget.is_thinned  # redraws are thinned anyway


def test_a_line_without_an_end_is_kept_only_up_to_a_limit() -> None:
    reader = LogReader()
    for _ in range(100):
        reader.feed(b"loss: 1 " * 4_000, budget=Budget(pieces=10))
    assert len(reader.state()["pending"]) <= 16_384
