"""Bars: as wide as the terminal allows, in characters that it has, and in a pipe a few lines instead."""

from __future__ import annotations

import io

import pytest

from stationmaster.cli.progress_bars import TransferBar, bar_line
from stationmaster.cli.table import cell_width

MB = 1_000_000


class Terminal(io.TextIOWrapper):
    def __init__(self, *, encoding: str = "utf-8", is_terminal: bool = True) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def text(self) -> str:
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_wide_bar_has_share_bytes_rate_and_time_left() -> None:
    line = bar_line("uploading cats", 30 * MB, 120 * MB, rate=2.5 * MB, columns=100)
    assert line == f"uploading cats  25% {'━' * 7}{'─' * 23}  30.0 MB/120.0 MB  2.5 MB/s  ETA 36s"


@pytest.mark.parametrize("columns", [20, 30, 40, 60, 80, 200])
@pytest.mark.parametrize(
    "title", ["uploading cats", "downloading s3://a-bucket/with/a/long/path/of/pictures", "猫" * 40]
)
def test_no_bar_is_wider_than_its_terminal(columns: int, title: str) -> None:
    for done in (0, 7, 119 * MB, 120 * MB):
        for rate in (None, 1.0, 2.5 * MB):
            assert cell_width(bar_line(title, done, 120 * MB, rate=rate, columns=columns)) < columns


def test_in_40_columns_there_is_a_bar_and_the_time_left() -> None:
    line = bar_line("packing cats", 30 * MB, 120 * MB, rate=2.5 * MB, columns=40)
    assert line == f"packing cats  25% {'━' * 3}{'─' * 9}  ETA 36s"


def test_a_terminal_without_these_characters_gets_others() -> None:
    line = bar_line("packing cats", 30 * MB, 120 * MB, rate=None, columns=40, stream=Terminal(encoding="ascii"))
    assert line.isascii()
    assert "#---" in line


def test_a_bar_is_redrawn_on_one_line_and_erased_at_its_end() -> None:
    terminal, clock = Terminal(), Clock()
    bar = TransferBar("packing cats", stream=terminal, clock=clock, columns=80)
    for tenth in range(11):
        clock.now += 0.5
        bar(tenth * 12 * MB, 120 * MB)
    bar.end()
    text = terminal.text()
    assert "\n" not in text
    assert text.count("\r") == 12
    assert text.endswith("\r\x1b[K")
    assert "24.0 MB/s" in text


def test_redraws_are_limited_however_often_something_arrives() -> None:
    terminal, clock = Terminal(), Clock()
    bar = TransferBar("packing cats", stream=terminal, clock=clock, columns=60)
    for byte in range(10_000):
        clock.now += 0.001
        bar(byte, 1_000_000)
    assert terminal.text().count("\r") <= 100


def test_work_of_a_moment_prints_nothing_in_a_pipe() -> None:
    pipe = Terminal(is_terminal=False)
    bar = TransferBar("packing cats", stream=pipe, clock=Clock(), columns=60)
    bar(1, 2)
    bar(2, 2)
    bar.end()
    assert pipe.text() == ""


def test_a_pipe_gets_a_line_per_tenth_and_none_twice() -> None:
    pipe, clock = Terminal(is_terminal=False), Clock()
    bar = TransferBar("copying 7f3k2q9a", stream=pipe, clock=clock)
    for percent in range(101):
        clock.now += 0.1
        bar(percent * MB, 100 * MB)
        bar(percent * MB, 100 * MB)
    bar.end()
    lines = pipe.text().splitlines()
    assert lines[0] == "copying 7f3k2q9a: 20 % of 100.0 MB"
    assert lines[-1] == "copying 7f3k2q9a: 100 % of 100.0 MB"
    assert len(lines) == len(set(lines)) == 9
    assert "\x1b" not in pipe.text()


def test_text_of_others_in_a_title_is_only_text() -> None:
    terminal, clock = Terminal(), Clock()
    bar = TransferBar("packing \x1b]0;pwned\x07\ncats", stream=terminal, clock=clock, columns=120)
    clock.now += 1
    bar(1, 2)
    assert "\x1b]" not in terminal.text()
    assert "\n" not in terminal.text()
