"""Blocks, and which of them are merged."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.series.blocks import MOST_ROWS, block_of, merged, runs_to_merge
from stationmaster.series.table import Table, table_of


def steps(first: int, count: int) -> Table:
    ids = list(range(first, first + count))
    return table_of("StepMetric", {"id": ids, "step": ids, "timestamp": [1000.0 + step for step in ids]})


def test_a_block_knows_what_it_holds() -> None:
    block = block_of(steps(5, 10), attempt=2)
    assert (block.attempt, block.name, block.row_count) == (2, "StepMetric", 10)
    assert (block.first_id, block.last_id) == (5, 14)
    assert (block.first_at, block.last_at) == (1005.0, 1014.0)
    assert block.table() == steps(5, 10)


def test_facts_about_the_run_have_no_time() -> None:
    block = block_of(table_of("RunInfo", {"id": [1], "key": ["platform"], "value": ["cpu"]}), attempt=1)
    assert (block.first_at, block.last_at) == (None, None)


def test_merged_blocks_hold_all_rows_in_their_order() -> None:
    blocks = [block_of(steps(first, 10), attempt=1) for first in (1, 11, 21)]
    whole = merged(blocks)
    assert whole.table() == steps(1, 30)
    assert (whole.first_id, whole.last_id, whole.row_count) == (1, 30, 30)


counts = st.lists(st.integers(1, MOST_ROWS), max_size=40) | st.lists(st.integers(1, 50), max_size=200)


@given(counts, st.booleans())
def test_runs_are_apart_and_no_block_gets_too_long(rows: list[int], is_complete: bool) -> None:
    runs = runs_to_merge(rows, is_complete=is_complete)
    assert all(len(run) > 1 for run in runs)
    assert all(before.stop <= after.start for before, after in itertools.pairwise(runs))
    assert all(sum(rows[place] for place in run) <= MOST_ROWS for run in runs)


@given(counts)
def test_after_a_complete_merge_no_two_neighbours_fit_together(rows: list[int]) -> None:
    left = list(rows)
    for run in reversed(runs_to_merge(rows, is_complete=True)):
        left[run.start : run.stop] = [sum(left[run.start : run.stop])]
    assert runs_to_merge(left, is_complete=True) == []
    assert all(before + after > MOST_ROWS for before, after in itertools.pairwise(left))


def test_a_long_block_is_not_rewritten_for_a_few_new_rows() -> None:
    assert runs_to_merge([30_000, 1, 1, 1], is_complete=False) == [range(1, 4)]
    assert runs_to_merge([30_000, 1, 1, 1], is_complete=True) == [range(4)]


def test_a_row_that_arrives_in_small_blocks_is_rewritten_a_few_times_only() -> None:
    blocks: list[int] = []
    rewritten = 0
    for number in range(6000):
        blocks.append(10)
        if number % 20 == 19:
            for run in reversed(runs_to_merge(blocks, is_complete=False)):
                rows = sum(blocks[run.start : run.stop])
                rewritten += rows
                blocks[run.start : run.stop] = [rows]
    assert len(blocks) < 40
    assert rewritten < 15 * 60_000
