"""A list of lines that can be longer than its place on the screen; only lines that changed are drawn again."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from stationmaster.tui.lines import Line
from stationmaster.tui.palette import DARK, Palette


class LineView(Widget):
    """Shows lines cut at its width. With `follows` it stays at the end while lines are added, until the person scrolls
    up; the end brings it back.
    """

    DEFAULT_CSS = """
    LineView { height: 1fr; width: 1fr; }
    """
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None, follows: bool = False) -> None:
        super().__init__(id=id, classes=classes)
        self.palette: Palette = DARK
        self._lines: Sequence[Line] = ()
        self._top = 0
        self._follows = follows
        self._at_end = True

    @property
    def lines(self) -> Sequence[Line]:
        return self._lines

    @property
    def top(self) -> int:
        """The number of the first line on the screen, from 0."""
        return self._top

    def show(self, lines: Sequence[Line]) -> None:
        """Replace all lines."""
        before, top_before = self._lines, self._top
        self._lines = lines
        self._top = self._bounded(len(lines) if self._follows and self._at_end else self._top)
        if self._top != top_before:
            self.refresh()
            return
        changed = [
            Region(0, place, self.size.width, 1)
            for place in range(self.size.height)
            if _at(before, self._top + place) != _at(lines, self._top + place)
        ]
        if changed:
            self.refresh(*changed)

    def scroll_lines(self, count: int) -> None:
        top = self._bounded(self._top + count)
        self._at_end = top >= self._bounded(len(self._lines))
        if top != self._top:
            self._top = top
            self.refresh()

    def scroll_to_line(self, place: int) -> None:
        self.scroll_lines(place - self._top)

    def set_palette(self, palette: Palette) -> None:
        self.palette = palette
        self.refresh()

    def render_line(self, y: int) -> Strip:
        shown = _at(self._lines, self._top + y)
        width = self.size.width
        if shown is None:
            return Strip.blank(width, self.palette[""])
        styles, usual = self.palette, self.palette[""]
        return Strip([Segment(text, styles.get(name, usual)) for text, name in shown]).adjust_cell_length(width, usual)

    def on_resize(self, event: events.Resize) -> None:
        self._top = self._bounded(len(self._lines) if self._follows and self._at_end else self._top)
        self.refresh()  # the lines that are kept from before may stand elsewhere now

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.scroll_lines(3)
        event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.scroll_lines(-3)
        event.stop()

    def _bounded(self, top: int) -> int:
        return max(0, min(top, len(self._lines) - max(1, self.size.height)))


def _at(lines: Sequence[Line], place: int) -> Line | None:
    return lines[place] if place < len(lines) else None
