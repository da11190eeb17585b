"""A log's lines can be dated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackside.steps.time_marks import MarkWriter, read_marks


def write(folder: Path, lengths: list[int]) -> Path:
    log, marks = folder / "log", folder / "times"
    log.touch()
    marks.unlink(missing_ok=True)
    writer = MarkWriter(log_path=str(log), marks_path=str(marks))
    for second, length in enumerate(lengths):
        with log.open("r+b") as file:
            file.truncate(length)
        writer.note(1000.0 + second)
    return marks


def test_a_mark_is_made_when_the_log_grew(tmp_path: Path) -> None:
    marks = write(tmp_path, [5, 5, 9])
    assert read_marks(str(marks), start=0, end=100, limit=10) == [(5, 1000.0), (9, 1002.0)]


def test_marks_begin_anew_when_the_log_shrank(tmp_path: Path) -> None:
    marks = write(tmp_path, [50, 90, 3, 8])
    assert read_marks(str(marks), start=0, end=100, limit=10) == [(3, 1002.0), (8, 1003.0)]


def test_a_new_writer_goes_on_where_the_old_one_was(tmp_path: Path) -> None:
    marks = write(tmp_path, [5])
    again = MarkWriter(log_path=str(tmp_path / "log"), marks_path=str(marks))
    again.note(1001.0)
    assert read_marks(str(marks), start=0, end=100, limit=10) == [(5, 1000.0)]


def test_marks_too_close_to_a_later_one_are_left_out(tmp_path: Path) -> None:
    marks = write(tmp_path, [1, 2, 3, 4, 5, 6, 7])
    found = read_marks(str(marks), start=0, end=100, limit=10, apart_seconds=2.5)
    assert found == [(1, 1000.0), (4, 1003.0), (7, 1006.0)]


def test_without_marks_there_are_none(tmp_path: Path) -> None:
    assert read_marks(str(tmp_path / "times"), start=0, end=9, limit=5) == []


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(0, 900), st.integers(0, 900), st.integers(1, 60))
def test_marks_within_the_answer_come_back_the_last_always(
    tmp_path_factory: pytest.TempPathFactory, growths: list[int], start: int, extent: int, limit: int
) -> None:
    lengths = [sum(growths[: index + 1]) for index in range(len(growths))]
    marks = write(tmp_path_factory.mktemp("marks"), lengths)
    found = read_marks(str(marks), start=start, end=start + extent, limit=limit)
    wanted = [(length, 1000.0 + n) for n, length in enumerate(lengths) if start < length <= start + extent]
    assert len(found) <= limit
    assert [mark for mark in wanted if mark in found] == found
    assert found[-1:] == wanted[-1:]
    if len(wanted) <= limit:
        assert found == wanted
