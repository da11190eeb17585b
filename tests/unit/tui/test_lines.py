"""Text of strangers on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.printable import plain
from stationmaster.tui.lines import text_of, wrapped


def test_escape_sequences_and_markup_do_nothing() -> None:
    assert plain("\x1b[2J\x1b]0;title\x07[red]x[/red]\x9b31m") == "[red]x[/red]"
    assert plain("a\u202eb\u200bc\r\n") == "abc"


@given(st.text(max_size=200))
def test_what_is_left_can_be_printed_on_one_line(text: str) -> None:
    shown = plain(text)
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in shown)
    assert plain(shown) == shown
    shown.encode()


def test_long_texts_are_wrapped_with_an_indent() -> None:
    lines = [text_of(each) for each in wrapped("word " * 12, 30, indent="  ")]
    assert len(lines) > 1
    assert all(len(each) <= 30 for each in lines)
    assert all(each.startswith("  ") for each in lines[1:])
