"""Progress of long work, on standard error: a bar that is redrawn in its place on a terminal, a few lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from stationmaster.cli.sparklines import can_show
from stationmaster.cli.speaking import can_redraw, coloured, is_quiet
from stationmaster.cli.table import cell_width, cut_cells
from stationmaster.cli.terminal_output import unguarded
from stationmaster.durations import format_duration
from stationmaster.printable import one_line

_UNNOTICED_IN_A_PIPE = 2.0  # seconds; shorter work needs no lines there
_REDRAW_SECONDS = 0.1
_RATE_SECONDS = 10.0  # over which the rate is measured
_LONGEST_BAR = 30
_SHORTEST_BAR = 6
_FULL, _EMPTY = "━", "─"
_PLAIN_FULL, _PLAIN_EMPTY = "#", "-"


@contextmanager
def transfer_bar(title: str, *, hidden: bool = False) -> Iterator[TransferBar | None]:
    """A callback for bytes done and all bytes. None where nothing is to be shown: with --quiet, or if `hidden`."""
    if hidden or is_quiet():
        yield None
        return
    bar = TransferBar(title)
    try:
        yield bar
    finally:
        bar.end()


class TransferBar:
    """Shows how far one piece of work is. In a pipe nothing is shown of work that is over in a moment."""

    def __init__(
        self,
        title: str,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        columns: int | None = None,
    ) -> None:
        """By default on standard error, as wide as its terminal."""
        self._title = one_line(title)
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._columns = columns
        self._redraws = can_redraw(self._stream)
        self._began = clock()
        self._seen: deque[tuple[float, int]] = deque()
        self._drawn_at: float | None = None
        self._tenth = -1

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > _RATE_SECONDS:
            self._seen.popleft()
        if self._redraws:
            self._redraw(done, total, now)
        else:
            self._print_tenth(done, total, now)

    def end(self) -> None:
        """Erase the bar: what the command prints next begins at the left."""
        if self._drawn_at is not None and self._redraws:
            self._write("\r\x1b[K")
        self._drawn_at = None

    def _redraw(self, done: int, total: int, now: float) -> None:
        if self._drawn_at is not None and now - self._drawn_at < _REDRAW_SECONDS and done < total:
            return
        self._drawn_at = now
        columns = self._columns or _columns_of(self._stream)
        line = bar_line(self._title, done, total, rate=self._rate(), columns=columns, stream=self._stream)
        self._write(f"\r{line}\x1b[K")

    def _print_tenth(self, done: int, total: int, now: float) -> None:
        tenth = 10 * done // max(1, total)
        if tenth <= self._tenth or now - self._began < _UNNOTICED_IN_A_PIPE:
            return
        self._tenth = tenth
        self._write(f"{self._title}: {10 * tenth} % of {size_text(total)}\n")

    def _rate(self) -> float | None:
        (begin, first), (end, last) = self._seen[0], self._seen[-1]
        return (last - first) / (end - begin) if end > begin and last > first else None

    def _write(self, text: str) -> None:
        terminal = unguarded(self._stream)
        terminal.write(text)
        terminal.flush()


def bar_line(
    title: str, done: int, total: int, *, rate: float | None, columns: int, stream: TextIO | None = None
) -> str:
    """One line of at most this many columns: what is done, how much of it, bytes, rate, time left.

    The rate is left out first, then the bytes, then the time left.
    """
    room = max(20, columns) - 1  # a terminal may wrap a line that fills it
    title = cut_cells(title, max(8, room // 3), mark="..")
    share = min(1.0, done / total) if total else 1.0
    amount = f"{size_text(done)}/{size_text(total)}"
    left = "" if not rate else f"ETA {format_duration((total - done) / rate)}"
    speed = "" if not rate else f"{size_text(rate)}/s"
    head = f"{title} {int(100 * share):>3}%"
    for words in ((amount, speed, left), (amount, left), (left,), ()):
        tail = "".join(f"  {word}" for word in words if word)
        bar = room - cell_width(head) - 1 - len(tail)
        if bar >= _SHORTEST_BAR:
            break
    drawn = drawn_bar(share, min(bar, _LONGEST_BAR), stream=stream) if bar > 0 else ""
    return f"{head} {coloured(drawn, 'cyan', stream)}{tail}".rstrip()


def drawn_bar(share: float, width: int, *, stream: TextIO | None = None) -> str:
    """The part that is done, then the rest: `━━━━────`, or `####----` where the stream cannot show that."""
    full, empty = (_FULL, _EMPTY) if can_show(_FULL + _EMPTY, stream) else (_PLAIN_FULL, _PLAIN_EMPTY)
    count = int(min(1.0, max(0.0, share)) * width)
    return full * count + empty * (width - count)


def size_text(size: float) -> str:
    """
    >>> size_text(950), size_text(12_345), size_text(12_345_678), size_text(7_250_000_000)
    ('950 B', '12.3 kB', '12.3 MB', '7.25 GB')
    """
    if size < 1e3:
        return f"{size:.0f} B"
    if size < 1e6:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.2f} GB"


def _columns_of(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
