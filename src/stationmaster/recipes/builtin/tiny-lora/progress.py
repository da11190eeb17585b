"""A progress bar in the shape of tqdm's, as ai-toolkit shows it, and lines that keep their order beside it."""

from __future__ import annotations

import sys
import time

_BLOCKS = " ▏▎▍▌▋▊▉█"
_WIDTH = 10
_SHORTEST_PAUSE = 0.1  # between two redraws
_SMOOTHING = 0.7


def say(text: str = "") -> None:
    """One line on standard output, at once, so that it keeps its place among the redraws on standard error."""
    print(text, flush=True)


class Bar:
    """A bar on standard error; `pause` takes the time of saving and sampling out of it."""

    def __init__(self, total: int, description: str = "", *, initial: int = 0, leave: bool = True) -> None:
        self.total, self.done, self.initial = total, initial, initial
        self.description, self.postfix = description, ""
        self._leave, self._width = leave, 0
        self._rate: float | None = None
        self._began = self._drawn_at = time.monotonic()
        self._drawn_done = initial
        self._paused_at: float | None = None
        self._draw(self._began)

    def show(self, postfix: str) -> None:
        """Set the text after the rate; the first one is drawn at once, before the counter moves."""
        first, self.postfix = not self.postfix, postfix
        if first:
            self._draw(time.monotonic())

    def update(self, count: int = 1) -> None:
        """Count on, and redraw if the last redraw is long enough ago."""
        self.done += count
        now = time.monotonic()
        if now - self._drawn_at >= _SHORTEST_PAUSE:
            self._measure(now)
            self._draw(now)

    def pause(self) -> None:
        """Show where the bar stands, and stop its clock."""
        self._paused_at = now = time.monotonic()
        self._measure(now)
        self._draw(now)

    def go_on(self) -> None:
        """Start the bar's clock again, as if no time had passed."""
        if self._paused_at is not None:
            away = time.monotonic() - self._paused_at
            self._began += away
            self._drawn_at += away
            self._paused_at = None

    def close(self) -> None:
        """Draw the last state, and end the line or wipe it."""
        now = time.monotonic()
        self._measure(now)
        self._draw(now)
        sys.stderr.write("\n" if self._leave else "\r" + " " * self._width + "\r")
        sys.stderr.flush()

    def _measure(self, now: float) -> None:
        count, seconds = self.done - self._drawn_done, now - self._drawn_at
        if count > 0 and seconds > 0:
            rate = count / seconds
            self._rate = rate if self._rate is None else _SMOOTHING * rate + (1 - _SMOOTHING) * self._rate
            self._drawn_done, self._drawn_at = self.done, now

    def _draw(self, now: float) -> None:
        self._drawn_at = now
        self._drawn_done = self.done
        line = self._line(now - self._began)
        sys.stderr.write("\r" + line + " " * max(0, self._width - len(line)))
        sys.stderr.flush()
        self._width = max(self._width, len(line))

    def _line(self, elapsed: float) -> str:
        share = self.done / self.total if self.total else 1.0
        left = "?" if not self._rate else clock((self.total - self.done) / self._rate)
        head = f"{self.description}: " if self.description else ""
        tail = ", " + self.postfix if self.postfix else ""
        counted = f"{self.done}/{self.total} [{clock(elapsed)}<{left}, {speed(self._rate)}{tail}]"
        return f"{head}{share * 100:3.0f}%|{blocks(share)}| {counted}"


def clock(seconds: float) -> str:
    """MM:SS below an hour, else H:MM:SS."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def speed(rate: float | None) -> str:
    """Steps per second, or seconds per step where that is the larger number."""
    if not rate:
        return "?it/s"
    return f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"


def blocks(share: float) -> str:
    """The bar itself, in eighths of a character; plain characters where the terminal knows no others."""
    plain = not (sys.stderr.encoding or "").lower().startswith("utf")
    glyphs = " 123456789#" if plain else _BLOCKS
    finest = len(glyphs) - 1
    full, part = divmod(int(min(1.0, share) * _WIDTH * finest), finest)
    text = glyphs[-1] * full + (glyphs[part] if full < _WIDTH else "")
    return text.ljust(_WIDTH)
