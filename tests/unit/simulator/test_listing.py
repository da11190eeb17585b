from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.simulator.listing import PageRequest, page

ids = st.sets(st.integers(1, 10_000), max_size=80)


def rows(numbers: set[int]) -> list[dict[str, Any]]:
    return [{"id": number, "label": f"l{number % 3}" if number % 5 else None} for number in numbers]


def follow(numbers: set[int], limit: int) -> tuple[list[int], set[int]]:
    shown: list[int] = []
    totals: set[int] = set()
    token = None
    while True:
        answer = page(rows(numbers), PageRequest(limit=limit, after_token=token))
        shown += [row["id"] for row in answer["instances"]]
        totals.add(answer["total_instances"])
        token = answer["next_token"]
        if token is None:
            return shown, totals


@given(ids, st.integers(1, 25))
def test_all_pages_together_hold_every_row_once(numbers: set[int], limit: int) -> None:
    shown, totals = follow(numbers, limit)
    assert shown == sorted(numbers)
    assert totals == {len(numbers)}


@given(ids.filter(lambda numbers: len(numbers) > 2), st.data())
def test_a_row_that_goes_between_two_pages_hides_no_other(numbers: set[int], data: st.DataObject) -> None:
    limit = data.draw(st.integers(1, len(numbers) - 1))
    first = page(rows(numbers), PageRequest(limit=limit))
    left = numbers - {data.draw(st.sampled_from(sorted(numbers)))}
    second = page(rows(left), PageRequest(limit=100, after_token=first["next_token"]))
    seen = {row["id"] for row in first["instances"] + second["instances"]}
    assert left <= seen
