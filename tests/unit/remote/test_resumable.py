"""Which parts of a file have to move."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.remote.resumable import CHUNK_BYTES, spans_between

HASHES = st.lists(st.sampled_from("abc"), max_size=12)


@given(mine=HASHES, theirs=HASHES, rest=st.integers(1, CHUNK_BYTES))
def test_what_differs_or_is_missing_moves_and_nothing_else(mine: list[str], theirs: list[str], rest: int) -> None:
    chunks = max(len(mine), len(theirs))
    size = (chunks - 1) * CHUNK_BYTES + rest if chunks else 0
    spans = spans_between(mine, tuple(theirs), size)
    covered = {offset // CHUNK_BYTES for span in spans for offset in range(span.offset, span.offset + span.size, 2**10)}
    different = {number for number in range(chunks) if mine[number : number + 1] != theirs[number : number + 1]}
    assert covered == different
    assert all(span.size > 0 and span.offset + span.size <= size for span in spans)
    assert all(one.offset + one.size < other.offset for one, other in pairwise(spans))
