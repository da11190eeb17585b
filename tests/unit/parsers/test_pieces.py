"""Bytes to the texts that a terminal would show."""

from __future__ import annotations

from stationmaster.parsers.pieces import PIECE_LIMIT_BYTES, find_end, shown_texts


def test_a_piece_ends_at_a_redraw_a_newline_or_what_a_dead_host_left() -> None:
    for ending in (b"\r", b"\n", b"\r\n", b"\x00\x00\x00", b"\x08\x08"):
        assert find_end(b"ab" + ending + b"cd", 0) == (2, 2 + len(ending))


def test_an_unfinished_piece_has_no_end() -> None:
    assert find_end(b"abc", 0) is None


def test_an_endless_piece_is_cut() -> None:
    assert find_end(b"x" * (PIECE_LIMIT_BYTES + 5), 0) == (PIECE_LIMIT_BYTES, PIECE_LIMIT_BYTES)


def test_colours_are_taken_off() -> None:
    assert shown_texts(b"\x1b[1m313/313\x1b[0m \x1b[32mdone\x1b[0m") == ["313/313 done"]


def test_moving_the_cursor_begins_another_text() -> None:
    assert shown_texts(b"first\x1b[Asecond") == ["first", "second"]


def test_a_carriage_return_that_a_tool_made_visible_is_one() -> None:
    assert shown_texts(b"0: ^M1|2|Loss: 3") == ["0: ", "1|2|Loss: 3"]


def test_broken_utf8_is_shown_not_refused() -> None:
    assert shown_texts(b"caf\xc3") == ["caf�"]
