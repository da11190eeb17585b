from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.printable import PrintableStream, json_text, one_line, plain, printable
from tests.support.jobs.hostile_texts import CONTROLS, ESCAPES

_PARTS = (
    "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x07", "\x9b", "\x9c", "\x9d", "\r", "\n", "\r\n", "\x08", "\t", "2J",
    "31m", "0;title", "52;c;", "?1049h", "(B", "a", "é", "\u202e", "\u2066", "\ud800", "\U000e0041", "\x1bc", " ", "\\",
)  # fmt: skip
_TEXTS = st.lists(st.one_of(st.sampled_from(_PARTS), st.text(max_size=3)), max_size=30)


@given(_TEXTS.map("".join))
def test_printable_text_has_no_control_and_stays_as_it_is(text: str) -> None:
    for shown in (printable(text), one_line(text), plain(text)):
        assert not CONTROLS.search(shown)
        assert printable(shown) == shown
        shown.encode()
    assert not set(one_line(text) + plain(text)) & {"\n", "\t"}


@given(_TEXTS)
def test_text_in_pieces_is_printed_as_the_whole_would_be(pieces: list[str]) -> None:
    stream = PrintableStream()
    assert "".join([*map(stream.feed, pieces), stream.end()]) == printable("".join(pieces))


@given(_TEXTS.map("".join))
def test_json_is_exact_and_has_no_control(text: str) -> None:
    shown = json_text({text: [text]}, indent=2)
    assert json.loads(shown) == {text: [text]}
    assert not CONTROLS.search(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 'text' — ünï ✓ 👩‍🚀\n\tnext", "plain 'text' — ünï ✓ 👩‍🚀\n\tnext"),
        ("\x1b[1;31mred\x1b[0m \x1b]8;;https://x.org\x1b\\link\x1b]8;;\x1b\\\x1b(B\x1b[m", "red link"),
        ("10%|#\r20%|##\r\ndone\r\r\n", "10%|#\n20%|##\ndone\n"),
        ("1/2\x08\x08\x08\r2/2\n", "1/2\n2/2\n"),
        ("\x1b]0;never ends\nnext", "\\x1b]0;never ends\nnext"),
        ("\x1b[\x1b[2J", "\\x1b["),
        ("bell\x07 nul\x00 del\x7f \x9b2Jc1", "bell\\x07 nul\\x00 del\\x7f c1"),
        ("if a\u202e \u2066# b\u2069", "if a\\u202e \\u2066# b\\u2069"),
    ],
)
def test_sequences_go_and_what_deceives_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_sequence_that_never_ends_holds_back_a_few_thousand_characters_at_most() -> None:
    stream = PrintableStream()
    shown = "".join(stream.feed("\x1b]52;c;" if n == 0 else "A" * 1000) for n in range(10))
    assert shown == "\\x1b]52;c;" + "A" * 9000


def test_markup_is_text() -> None:
    assert "[bold red]h[/]" in plain(ESCAPES)
