"""Thinned logs say the same as raw ones."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackside.report.log_chunks import Position, parse_positions, read_new
from trackside.report.thinning import cut_between_pieces, thin_redraws


def bar(step: int, *, label: str = "train", more: str = "") -> str:
    return f"{label}: {step}%|{'#' * (step // 10)} | {step}/100 [00:{step % 60:02d}<01:00, 1.0it/s{more}]"


def thin(raw: bytes) -> bytes:
    return thin_redraws(raw).data


def test_a_run_of_redraws_keeps_its_first_and_last() -> None:
    raw = "\r".join(bar(step) for step in range(1, 8)) + "\n"
    assert thin(raw.encode()).decode() == f"{bar(1)}\r{bar(7)}\n"


def test_redraws_that_begin_with_the_return_are_thinned_as_well() -> None:
    raw = "".join("\r" + bar(step) for step in range(1, 8)) + "\nsaved\n"
    assert thin(raw.encode()).decode() == f"\r{bar(1)}\r{bar(7)}\nsaved\n"


def test_the_last_redraw_before_an_unfinished_one_stays() -> None:
    raw = "\r".join([bar(1), bar(2), bar(3), "train: 4%|"])
    assert thin(raw.encode()).decode() == f"{bar(1)}\r{bar(3)}\rtrain: 4%|"


def test_text_between_redraws_stays() -> None:
    raw = f"{bar(1)}\r{bar(2)}\r{bar(3)}\rsomething happened\r{bar(4)}\r{bar(5)}\r{bar(6)}\n"
    kept = f"{bar(1)}\r{bar(3)}\rsomething happened\r{bar(4)}\r{bar(6)}\n"
    assert thin(raw.encode()).decode() == kept


def test_two_bars_are_two_runs() -> None:
    first = [bar(step, label="epoch 1") for step in (1, 2, 3)]
    second = [bar(step, label="epoch 2") for step in (1, 2, 3)]
    thinned = thin("\r".join([*first, *second, ""]).encode()).decode()
    assert thinned == "\r".join([first[0], first[2], second[0], second[2], ""])


def test_the_turn_to_nan_is_always_seen() -> None:
    bars = [bar(1), bar(2), bar(3), bar(4, more=", loss=nan"), bar(5), bar(6), bar(7)]
    assert b"loss=nan" in thin("\r".join([*bars, ""]).encode())


def test_a_counter_without_percentage_is_a_bar_too() -> None:
    raw = "".join(f"{step}it [00:01, 3.00it/s]\r" for step in range(10, 20))
    assert thin(raw.encode()) == b"10it [00:01, 3.00it/s]\r19it [00:01, 3.00it/s]\r"


def test_windows_line_ends_are_no_redraws() -> None:
    raw = b"".join(b"loss 0.%d\r\n" % step for step in range(20))
    assert thin(raw) == raw


texts = st.sampled_from(
    ["train: 1%|", "train: 20%|#", "train: 100%|##", "eval: 5%|", "3it [", "14it [", "warning", "", "loss=0.5", "é"]
)
ends = st.sampled_from(["\r", "\r", "\r", "\n", "\r\n", ""])
logs = st.lists(st.tuples(texts, ends)).map(lambda parts: "".join(text + end for text, end in parts).encode())


def screen(log: bytes) -> list[bytes]:
    """What a terminal shows in the end, were every redraw as long as the one before."""
    return [line.rstrip(b"\r").rpartition(b"\r")[2] for line in log.split(b"\n")]


@given(logs)
def test_the_screen_shows_the_same(raw: bytes) -> None:
    assert screen(thin(raw)) == screen(raw)


@given(logs)
def test_thinning_twice_changes_nothing(raw: bytes) -> None:
    once = thin(raw)
    assert thin(once) == once


@given(logs)
def test_only_whole_redraws_are_left_out_and_nothing_is_moved(raw: bytes) -> None:
    pieces = iter(re.findall(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", raw))
    for kept in re.findall(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", thin(raw)):
        for piece in pieces:
            if piece == kept:
                break
            assert piece.endswith(b"\r")
            assert re.search(rb"\d", piece)
        else:
            raise AssertionError(f"{kept!r} was not in the log")


@given(st.lists(st.sampled_from(["train: 1%|", "train: 20%|#", "3it [", "14it ["]), min_size=1), st.booleans())
def test_a_log_without_returns_is_untouched(lines: list[str], with_end: bool) -> None:
    raw = "\n".join(lines).encode() + b"\n" * with_end
    assert thin(raw) == raw


@given(logs, st.lists(st.integers(0, 400), max_size=5))
def test_joined_answers_show_the_same_wherever_they_were_parted(raw: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    joined = b"".join(thin(raw[a:b]) for a, b in pairwise(edges))
    assert screen(joined) == screen(raw)


def test_what_a_bar_showed_at_a_known_time_stays() -> None:
    raw = "".join("\r" + bar(step) for step in range(10, 50)).encode()
    written = raw.index(b"\r" + bar(31).encode())
    data, places = thin_redraws(raw, [written])
    assert data == "".join("\r" + bar(step) for step in (10, 30, 48, 49)).encode()
    assert data[: places[0]].endswith(bar(30).encode())


@given(logs, st.lists(st.integers(1, 400), max_size=5))
def test_up_to_a_place_the_screen_shows_the_same(raw: bytes, places: list[int]) -> None:
    asked = sorted(place for place in places if place <= len(raw))
    data, moved = thin_redraws(raw, asked)
    assert len(moved) == len(asked)
    for before, after in zip(asked, moved, strict=True):
        assert screen(data[:after]) == screen(raw[:before])


@given(logs)
def test_a_cut_falls_between_pieces(raw: bytes) -> None:
    cut = cut_between_pieces(raw)
    assert raw.startswith(cut)
    assert cut == raw or cut.endswith((b"\r", b"\n"))


@given(logs, st.integers(1, 40))
def test_reading_in_small_answers_arrives_at_the_end(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, limit: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(raw)
    position, parts = None, []
    while (chunk := read_new(str(path), position, limit_bytes=limit)) is not None:
        assert chunk.start == (position.offset if position else 0)
        assert not chunk.restarted
        assert chunk.is_last == (chunk.end == len(raw))
        parts.append(thin(chunk.data))
        position = Position(inode=chunk.inode, offset=chunk.end)
    assert (position.offset if position else 0) == len(raw)
    assert screen(b"".join(parts)) == screen(raw)


def test_a_log_that_shrank_or_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"new\n")
    inode = path.stat().st_ino
    shrunk = read_new(str(path), Position(inode=inode, offset=100), limit_bytes=1000)
    replaced = read_new(str(path), Position(inode=inode + 1, offset=2), limit_bytes=1000)
    for chunk in (shrunk, replaced):
        assert chunk is not None
        assert (chunk.restarted, chunk.start, chunk.data) == (True, 0, b"new\n")


def test_a_position_that_makes_no_sense_is_unknown() -> None:
    record = {"0.1": {"inode": 3, "offset": 9}, "1.1": {"inode": "?"}, "2.1": 7}
    assert parse_positions(record) == {"0.1": Position(inode=3, offset=9)}
    assert parse_positions(None) == {}
