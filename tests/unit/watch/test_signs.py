"""Signs of life in a log without steps."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.watch.signs import SignsOfLife
from tests.support.watching.trace_maker import bar


def moves(*pieces: str) -> list[bool]:
    signs = SignsOfLife()
    return [signs.feed(f"{piece}\n") for piece in pieces]


def test_a_line_never_seen_before_is_a_sign() -> None:
    assert moves("Loading VAE", "Loading T5") == [True, True]


def test_a_heartbeat_is_none() -> None:
    assert moves("alive, gpu 100%, 22.0 GiB", "alive, gpu 99%, 22.4 GiB") == [True, False]


def test_a_bar_that_goes_on_is_one_and_a_bar_that_stands_is_none() -> None:
    drawn = [bar("Caching latents", done, 60, 9, 1) for done in (1, 2, 2, 3)]
    assert moves(*drawn) == [True, True, False, True]


def test_a_bar_that_begins_anew_before_it_was_full_is_none_until_it_is_further() -> None:
    drawn = [bar("model.safetensors", done, 100, 9, 1) for done in (50, 10, 40, 60)]
    assert moves(*drawn) == [True, False, False, True]


def test_a_bar_that_begins_anew_after_it_was_full_is_the_next_one() -> None:
    drawn = [bar("Caching latents", done, 4, 9, 1) for done in (4, 0, 1)]
    assert moves(*drawn) == [True, True, True]


def test_bytes_are_compared_across_units() -> None:
    drawn = [f"\rmodel.bin: {n}%|#  | {size}/5.77G [00:10<05:00, 12MB/s]" for n, size in ((11, "653M"), (18, "1.09G"))]
    assert moves(*drawn) == [True, True]


def test_of_many_bars_at_once_the_last_ones_tell_how_far_it_came() -> None:
    signs = SignsOfLife()
    assert signs.feed("".join(bar("Caching latents", done, 300, 9, 1) + "\n" for done in range(1, 251)))
    assert not signs.feed(bar("Caching latents", 250, 300, 9, 1) + "\n")
    assert signs.feed(bar("Caching latents", 251, 300, 9, 1) + "\n")


@pytest.mark.parametrize("at_once", [True, False])
def test_only_the_latest_lines_are_remembered(at_once: bool) -> None:
    signs = SignsOfLife()
    flood = "".join(f"Loading {a}{b}{c}\n" for a, b, c in itertools.product("abcdefg", repeat=3))
    for text in [flood] if at_once else flood.splitlines(keepends=True):
        assert signs.feed(text)
    assert not signs.feed("Loading ggg\n")
    assert signs.feed("Loading aaa\n")
    assert len(signs.state()["shapes"]) < 7**3


@given(st.text(alphabet="ab1%|/[] \r\n", max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_it_does_not_matter_how_the_text_is_cut(text: str, cuts: list[int]) -> None:
    text += "\n"
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    cut_up, whole = SignsOfLife(), SignsOfLife()
    said = [cut_up.feed(text[begin:end]) for begin, end in itertools.pairwise(places)]
    assert any(said) == whole.feed(text)
    assert cut_up.state() == whole.state()
