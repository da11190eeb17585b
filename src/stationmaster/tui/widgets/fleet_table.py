"""The table of all trainings or machines. A look that changes three cells writes three cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from stationmaster.tui.columns import Placed, cell, fitted, layout, sortable
from stationmaster.tui.fleet import FleetRow
from stationmaster.tui.palette import DARK, Palette

_HEADER = 1
_FEW = 50
_Cells = tuple[tuple[str, str], ...]  # texts with the names of their styles


@dataclass(frozen=True, slots=True)
class _KnownCells:
    """The cells of a row, which are made once for each look."""

    row: FleetRow
    is_at_cursor: bool
    cells: _Cells


class FleetTable(Widget, can_focus=True):
    """Keeps the cursor on the same training when rows move."""

    DEFAULT_CSS = """
    FleetTable { height: 1fr; width: 1fr; }
    """
    ALLOW_SELECT = False

    @dataclass
    class Opened(Message):
        """Enter, or a click on the row under the cursor."""

        id: str

    @dataclass
    class HeaderClicked(Message):
        title: str

    @dataclass
    class CursorMoved(Message):
        id: str | None

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.palette: Palette = DARK
        self.sorted_by: str | None = None
        self.is_reversed = False
        self._rows: Sequence[FleetRow] = ()
        self._columns: list[Placed] = layout(80)
        self._drawn: dict[int, _Cells] = {}  # by line of the screen: what is there now
        self._known_cells: dict[str, _KnownCells] = {}
        self._top = 0
        self._cursor: str | None = None

    @property
    def rows(self) -> Sequence[FleetRow]:
        return self._rows

    @property
    def cursor(self) -> str | None:
        """The id of the row under the cursor."""
        return self._cursor

    @property
    def sortable(self) -> list[str]:
        return sortable(self._columns)

    def sort_key(self, title: str | None) -> Placed | None:
        return next((each for each in self._columns if each.column.title == title), None)

    def show(self, rows: Sequence[FleetRow]) -> None:
        """Replace all rows and draw the cells that differ."""
        self._rows = rows
        if len(self._known_cells) > 2 * len(rows) + _FEW:
            self._known_cells.clear()  # of rows that are gone
        self._keep_cursor()
        self._top = self._bounded(self._top)
        self._draw_changes()

    def set_palette(self, palette: Palette) -> None:
        self.palette = palette
        self.refresh()

    def set_sort(self, title: str | None, *, is_reversed: bool) -> None:
        if (title, is_reversed) != (self.sorted_by, self.is_reversed):
            self.sorted_by, self.is_reversed = title, is_reversed
            self.refresh(Region(0, 0, self.size.width, _HEADER))

    def move_cursor(self, count: int) -> None:
        """Move the cursor by rows, as far as there are any."""
        if not self._rows:
            return
        place = max(0, min(len(self._rows) - 1, self._cursor_place() + count))
        self._cursor = self._rows[place].id
        self._show_cursor()
        self._draw_changes()
        self.post_message(self.CursorMoved(self._cursor))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y < _HEADER:
            return self._strip(self._header(), "header", width)
        cells = self._cells(self._top + y - _HEADER)
        if cells is None:
            self._drawn.pop(y, None)
            return Strip.blank(width, self.palette[""])
        self._drawn[y] = cells
        return self._strip(cells, cells[0][1], width)

    def on_resize(self, event: events.Resize) -> None:
        self._columns = layout(event.size.width)
        self._known_cells.clear()
        self._show_cursor()
        self._drawn.clear()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        if event.y < _HEADER:
            for each in self._columns:
                if each.x <= event.x <= each.x + each.width and each.column.sort is not None:
                    self.post_message(self.HeaderClicked(each.column.title))
            return
        place = self._top + event.y - _HEADER
        if place >= len(self._rows):
            return
        if self._rows[place].id == self._cursor:
            self.post_message(self.Opened(self._cursor))
        else:
            self.move_cursor(place - self._cursor_place())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move_cursor(3)
        event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move_cursor(-3)
        event.stop()

    def _draw_changes(self) -> None:
        """Ask for a refresh of every part of the screen that differs from what is drawn there."""
        regions = [region for y in range(_HEADER, self.size.height) for region in self._changes_in(y)]
        if regions:
            self.refresh(*regions)

    def _changes_in(self, y: int) -> Iterator[Region]:
        before, after = self._drawn.get(y), self._cells(self._top + y - _HEADER)
        if before == after:
            return
        if before is None or after is None or len(before) != len(after) or before[0] != after[0]:
            yield Region(0, y, self.size.width, 1)
            return
        for placed, old, new in zip(self._columns, before[1:], after[1:], strict=True):
            if old != new:
                yield Region(placed.x, y, placed.width, 1)

    def _cells(self, place: int) -> _Cells | None:
        """The cells of one row, behind a first one that says whether the cursor is there."""
        if place >= len(self._rows):
            return None
        row = self._rows[place]
        known = self._known_cells.get(row.id)
        is_at_cursor = row.id == self._cursor
        if known is not None and known.row is row and known.is_at_cursor == is_at_cursor:
            return known.cells
        rest = "old" if row.is_old else ""
        toned = "old" if row.is_old else row.tone.value
        cells = (
            ("", "cursor" if is_at_cursor else ""),
            *((cell(row, placed), toned if placed.column.toned else rest) for placed in self._columns),
        )
        self._known_cells[row.id] = _KnownCells(row, is_at_cursor, cells)
        return cells

    def _header(self) -> _Cells:
        titles = []
        for placed in self._columns:
            title = placed.title
            if title and placed.column.title == self.sorted_by:
                title += "▼" if self.is_reversed else "▲"
            titles.append((fitted(title, placed.width, is_right=placed.column.is_right), "header"))
        return (("", ""), *titles)

    def _strip(self, cells: _Cells, over: str, width: int) -> Strip:
        """The cells at their places. `over` adds its style to every cell: the cursor's. All widths are known, so
        nothing is measured again.
        """
        added = self.palette[over]
        segments, x = [], 0
        for placed, (text, style) in zip(self._columns, cells[1:], strict=True):
            if placed.x > x:
                segments.append(Segment(" " * (placed.x - x), added))
            segments.append(Segment(text, self.palette[style] + added if over else self.palette[style]))
            x = placed.x + placed.width
        if x > width:
            return Strip(segments, x).crop(0, width)
        segments.append(Segment(" " * (width - x), added))
        return Strip(segments, width)

    def _keep_cursor(self) -> None:
        """The cursor stays on its row; if that is gone, it moves to the first one."""
        if not any(row.id == self._cursor for row in self._rows):
            self._cursor = self._rows[0].id if self._rows else None
            self.post_message(self.CursorMoved(self._cursor))

    def _show_cursor(self) -> None:
        """Scroll no further than the row of the cursor needs."""
        place = self._cursor_place()
        self._top = self._bounded(min(max(self._top, place - self._room() + 1), place))

    def _cursor_place(self) -> int:
        return next((place for place, row in enumerate(self._rows) if row.id == self._cursor), 0)

    def _room(self) -> int:
        return max(1, self.size.height - _HEADER)

    def _bounded(self, top: int) -> int:
        return max(0, min(top, len(self._rows) - self._room()))
