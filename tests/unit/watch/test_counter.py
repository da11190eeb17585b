"""Printed counters become one position."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.saved_state import from_json, to_json
from stationmaster.watch.counter import Counter
from stationmaster.watch.log_moment import LogMoment


def positions(counter: Counter, *seen: Mapping[str, object]) -> list[tuple[float, float | None]]:
    found = [counter.read(LogMoment(at=0.0, **values)) for values in seen]  # type: ignore[arg-type]
    return [(position.value, position.total) for position in found if position is not None]


def test_a_counter_of_the_run_is_taken_as_it_stands() -> None:
    steps = [{"step": n, "total": 100, "scope": "run"} for n in (0, 7, 7, 9)]
    assert positions(Counter(), *steps) == [(0, 100), (7, 100), (7, 100), (9, 100)]


def test_a_resume_under_the_same_total_falls_back() -> None:
    steps = [{"step": n, "total": 2500, "scope": "run"} for n in (1140, 1000, 1003)]
    assert [value for value, _ in positions(Counter(2500), *steps)] == [1140, 1000, 1003]


def test_a_resumed_counter_of_what_remains_is_placed_where_it_belongs() -> None:
    before = {"step": 1600, "total": 4000, "scope": "run"}
    after = {"step": 0, "total": 2500, "scope": "run"}
    assert positions(Counter(4000), before, after) == [(1600, 4000), (1500, 4000)]


def test_a_second_stage_goes_on_where_the_first_ended() -> None:
    steps = [{"step": 1000, "total": 1000}, {"step": 0, "total": 2000}, {"step": 5, "total": 2000}]
    assert positions(Counter(), *steps) == [(1000, 1000), (1000, 3000), (1005, 3000)]


def test_epochs_counted_from_zero_are_added_up() -> None:
    steps = [
        {"step": step, "total": 25, "scope": "epoch", "epoch": epoch, "total_epochs": 4}
        for epoch, step in ((0, 24), (0, 25), (1, 0), (1, 5), (3, 25))
    ]
    assert positions(Counter(), *steps) == [(24, 100), (25, 100), (25, 100), (30, 100), (100, 100)]


def test_epochs_counted_from_one_are_added_up() -> None:
    steps = [
        {"step": step, "total": 25, "scope": "epoch", "epoch": epoch, "total_epochs": 4}
        for epoch, step in ((1, 25), (2, 3))
    ]
    assert positions(Counter(), *steps) == [(25, 100), (28, 100)]


def test_an_epoch_that_is_not_printed_is_noticed_by_the_counter_that_was_full() -> None:
    steps = [{"step": step, "total": 25, "scope": "epoch"} for step in (24, 25, 1)]
    assert [value for value, _ in positions(Counter(), *steps)] == [24, 25, 26]


def test_a_counter_beside_an_epoch_that_goes_on_spans_the_run() -> None:
    steps = [
        {"step": step, "total": 3000, "scope": "epoch", "epoch": epoch, "total_epochs": 3}
        for epoch, step in ((1, 1000), (2, 1010))
    ]
    assert positions(Counter(), *steps)[-1] == (1010, 3000)
    assert positions(Counter(3000), *steps[:1]) == [(1000, 3000)]


def test_fractions_of_epochs_count_as_steps_where_both_totals_are_known() -> None:
    assert positions(Counter(9000), {"total_epochs": 3}, {"epoch": 1.5}) == [(4500, 9000)]
    assert positions(Counter(), {"epoch": 2, "total_epochs": 40}) == [(2, 40)]


def test_a_step_after_epochs_is_another_unit() -> None:
    counter = Counter()
    counter.read(LogMoment(at=0.0, epoch=1, total_epochs=5))
    position = counter.read(LogMoment(at=1.0, step=20))
    assert position is not None
    assert position.is_new_unit


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "step": st.none() | st.integers(0, 500),
                "total": st.none() | st.integers(1, 500),
                "scope": st.sampled_from([None, "run", "epoch"]),
                "epoch": st.none() | st.floats(0, 9),
                "total_epochs": st.none() | st.integers(1, 9),
            }
        ),
        max_size=20,
    ),
    st.integers(0, 20),
)
def test_a_restored_counter_goes_on_the_same(rows: list[dict[str, object]], cut: int) -> None:
    whole, first = Counter(300), Counter(300)
    expected = positions(whole, *rows)
    head = positions(first, *rows[:cut])
    second = from_json(Counter, json.loads(json.dumps(to_json(first))), asked_total=300)
    assert head + positions(second, *rows[cut:]) == expected
