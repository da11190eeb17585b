from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.providers.vastai.retries import HURRIED, Retries

DRAWS = st.floats(min_value=0, max_value=1)


@given(st.integers(min_value=1, max_value=20), DRAWS)
def test_a_wait_is_never_longer_than_the_bound(failures: int, draw: float) -> None:
    wait = Retries(attempts=50, longest_seconds=15.0).wait(failures, None, draw=draw)
    assert wait is not None
    assert 0 < wait <= 15.0


@given(st.integers(min_value=1, max_value=10), DRAWS)
def test_waits_grow_until_the_bound(failures: int, draw: float) -> None:
    retries = Retries(attempts=50, longest_seconds=1000.0)
    earlier, later = (retries.wait(count, None, draw=draw) for count in (failures, failures + 1))
    assert earlier is not None
    assert later is not None
    assert later >= earlier


@given(st.integers(min_value=1, max_value=10), st.floats(min_value=0, max_value=15), DRAWS)
def test_nobody_comes_back_before_the_time_that_was_asked_for(failures: int, asked: float, draw: float) -> None:
    wait = Retries(attempts=50).wait(failures, asked, draw=draw)
    assert wait is not None
    assert wait >= asked


@given(st.integers(min_value=1, max_value=10), DRAWS)
def test_tries_are_counted(attempts: int, draw: float) -> None:
    retries = Retries(attempts=attempts)
    assert retries.wait(attempts, None, draw=draw) is None
    assert attempts == 1 or retries.wait(attempts - 1, None, draw=draw) is not None


@given(st.floats(min_value=0, max_value=20), st.floats(min_value=0, max_value=8), DRAWS)
def test_nobody_begins_a_try_after_the_time_that_a_person_waits(spent: float, turn: float, draw: float) -> None:
    wait = HURRIED.wait(1, None, draw=draw, spent_seconds=spent, turn=turn)
    assert wait is None or spent + max(wait, turn) < HURRIED.within_seconds
    assert wait is not None or spent + max(0.5, turn) >= HURRIED.within_seconds
