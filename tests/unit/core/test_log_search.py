"""Lines found in a log: whole lines, whatever the pieces are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import UserError
from stationmaster.model import LogChunk
from stationmaster.station.local.log_search import matches


def pieces(text: bytes, *cuts: int, stream: str = "train.1") -> list[tuple[int, LogChunk]]:
    """The text in pieces that end at these places."""
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    starts = [0, *ends]
    return [
        (seq, LogChunk(attempt=1, stream=stream, start=start, end=end, data=text[start:end]))
        for seq, (start, end) in enumerate(zip(starts, ends, strict=False), 1)
    ]


def found(text: bytes, wanted: str, *cuts: int) -> list[tuple[int, str]]:
    return [(one.line, one.text) for one in matches(pieces(text, *cuts), wanted)]


def test_upper_and_lower_case_are_the_same_and_lines_are_counted() -> None:
    log = b"start\nCUDA Out Of Memory\r\nnothing\nout of memory again"
    assert found(log, "out of MEMORY") == [(2, "CUDA Out Of Memory"), (4, "out of memory again")]
    assert found(log, "elsewhere") == []
    assert found("straße\n".encode(), "STRASSE") == [(1, "straße")]


def test_of_a_progress_bar_the_last_drawing_with_the_text_is_shown() -> None:
    assert found(b"10% loss: 3\r20% loss: 2\r30%\r\n", "loss") == [(1, "20% loss: 2")]


@given(st.lists(st.integers(0, 60), max_size=6))
def test_the_pieces_do_not_matter(cuts: list[int]) -> None:
    log = "erste Zeile\nzweite: Wärme\n\ndritte Zeile\nWärme am Ende".encode()
    assert found(log, "wärme", *cuts) == [(2, "zweite: Wärme"), (5, "Wärme am Ende")]


def test_streams_are_lines_of_their_own() -> None:
    mixed = [pieces(b"one er")[0], pieces(b"error two\n", stream="check.1")[0], pieces(b"ror three\n")[0]]
    assert [(one.stream, one.line, one.text) for one in matches(mixed, "error")] == [
        ("check.1", 1, "error two"),
        ("train.1", 1, "one error three"),
    ]


def test_a_line_without_an_end_does_not_fill_the_memory_and_is_shown_cut() -> None:
    log = b"x" * 100_000 + b"needle" + b"y" * 100_000
    (match,) = matches(pieces(log, *range(0, 200_000, 5_000)), "needle")
    assert "needle" in match.text
    assert len(match.text) == 2000


@pytest.mark.parametrize("text", ["", "two\nlines", "x" * 201])
def test_a_text_that_no_line_contains_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        list(matches([], text))
