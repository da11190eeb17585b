"""The first line: what is shown, whether it is made up or paused, and how old it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from stationmaster.durations import format_duration
from stationmaster.tui.lines import Span
from stationmaster.tui.sources.base import About
from stationmaster.tui.widgets.line_view import LineView

_OLD_INTERVALS = 3.0
_OLD_SECONDS = 5.0


class TopBar(LineView):
    def __init__(self, about: About, *, now: Callable[[], float]) -> None:
        super().__init__()
        self._about = about
        self._now = now
        self._title = about.title
        self._at: float | None = None
        self._problem: str | None = None
        self._is_paused = False

    def on_mount(self) -> None:
        self.set_interval(1.0, self._draw)
        self._draw()

    def set_title(self, title: str) -> None:
        self._title = title
        self._draw()

    def note_look(self, at: float, *, problem: str | None = None) -> None:
        self._at, self._problem = at, problem
        self._draw()

    def note_problem(self, problem: str) -> None:
        self._problem = problem
        self._draw()

    def set_paused(self, paused: bool) -> None:
        self._is_paused = paused
        self._draw()

    def _draw(self) -> None:
        """Only what changed is drawn again: as long as all is well, nothing."""
        self.show([tuple(self._spans())])

    def _spans(self) -> list[Span]:
        spans: list[Span] = []
        if self._about.is_made_up:
            spans.append((" MOCK DATA: nothing here is real ", "made_up"))
            spans.append((" ", ""))
        spans.append((self._title, "title"))
        if self._is_paused:
            spans.append(("  PAUSED, p resumes", "warning"))
        spans += self._age()
        return spans

    def _age(self) -> list[Span]:
        if self._at is None:
            return [(f"  {self._problem or 'waiting for the first answer'}", "warning" if self._problem else "dim")]
        age = self._now() - self._at
        since = f"{datetime.fromtimestamp(self._at):%H:%M:%S}"
        if self._problem is not None:
            return [(f"  data from {since}, {format_duration(age)} old: {self._problem}", "warning")]
        if age > max(_OLD_SECONDS, _OLD_INTERVALS * self._about.interval) and not self._is_paused:
            return [(f"  no answer since {since}, {format_duration(age)} ago", "warning")]
        return [(f"  {since}", "dim")]
