from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.simulator.api_refusals import ApiRefusal
from stationmaster.simulator.filters import matches, ordered

ROW = {"num_gpus": 2, "reliability": 0.97, "verified": True, "gpu_name": "RTX 4090", "geolocation": "Quebec, CA"}
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ({"num_gpus": {"eq": "2"}}, True),
        ({"num_gpus": {"gte": 1, "lt": "3"}}, True),
        ({"num_gpus": {"gt": "2"}}, False),
        ({"verified": {"eq": "true"}}, True),
        ({"verified": {"eq": False}}, False),
        ({"gpu_name": {"in": ["RTX 3090", "RTX 4090"]}}, True),
        ({"gpu_name": {"notin": ["RTX 4090"]}}, False),
        ({"gpu_name": {"neq": "H100"}}, True),
        ({"geolocation": {"in": ["US", "CA"]}}, True),
        ({"geolocation": {"eq": "Quebec, CA"}}, True),
        ({"a field nobody knows": {"eq": 1}}, True),
    ],
)
def test_conditions_are_read_as_the_field_they_are_about(query: dict[str, Any], holds: bool) -> None:
    assert matches(ROW, query) is holds


def test_driver_versions_compare_as_numbers() -> None:
    row = {"driver_version": "570.86.10"}
    assert matches(row, {"driver_version": {"gte": 535086005}})
    assert not matches(row, {"driver_version": {"gte": 570086011}})


def test_what_is_not_known_is_neither_more_nor_less() -> None:
    assert not matches({"gpu_util": None}, {"gpu_util": {"gte": 0}})
    assert not matches({"gpu_util": None}, {"gpu_util": {"lt": 1}})


@pytest.mark.parametrize("query", [{"num_gpus": {"resembles": 1}}, {"num_gpus": {"gt": "many"}}])
def test_nonsense_is_refused(query: dict[str, Any]) -> None:
    with pytest.raises(ApiRefusal):
        matches(ROW, query)


@given(numbers, numbers)
def test_numbers_sent_as_text_compare_like_numbers(have: float, want: float) -> None:
    row = {"x": have}
    assert matches(row, {"x": {"lt": str(want)}}) == (have < want)
    assert matches(row, {"x": {"gte": str(want)}}) != matches(row, {"x": {"lt": str(want)}})


@given(st.lists(st.fixed_dictionaries({"a": st.none() | st.integers(), "b": st.integers()})))
def test_rows_are_ordered_by_the_first_pair_first_and_none_is_lost(rows: list[dict[str, Any]]) -> None:
    result = ordered(rows, [["a", "asc"], ["b", "desc"]])
    assert sorted(map(str, result)) == sorted(map(str, rows))
    keys = [(row["a"] is None, row["a"] or 0, -row["b"]) for row in result]
    assert keys == sorted(keys)
