"""All trainings or machines on one screen: the summary, the table, and what they print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual._styles_cache import StylesCache
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

from stationmaster.tui import keys
from stationmaster.tui.fleet import ALL, Arrangement, FleetView, arranged, next_of
from stationmaster.tui.messages import ActionWanted, DetailWanted, LogsCleared
from stationmaster.tui.palette import Palette
from stationmaster.tui.sources.base import About, Action
from stationmaster.tui.status_lines import summary_lines, view_line
from stationmaster.tui.widgets.fleet_table import FleetTable
from stationmaster.tui.widgets.key_footer import KeyFooter
from stationmaster.tui.widgets.line_view import LineView
from stationmaster.tui.widgets.top_bar import TopBar

_FILTER_HINT = "text in the id, name, GPU, status or note; Enter keeps it, Escape clears it"


class FleetScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.COMMON, keys.FLEET, keys.ABOUT_THE_APP, keys.ACTIONS)
    DEFAULT_CSS = """
    FleetScreen { layout: vertical; }
    FleetScreen TopBar { height: 1; }
    FleetScreen #summary { height: 2; }
    FleetScreen #arrangement { height: 1; }
    FleetScreen #logs { height: 30%; max-height: 14; border-top: solid $primary; }
    FleetScreen Input { height: 1; border: none; padding: 0; display: none; }
    """
    AUTO_FOCUS = "FleetTable"

    def __init__(self, about: About, palette: Palette, *, now: Callable[[], float], group: str = ALL) -> None:
        super().__init__()
        self._about = about
        self._palette = palette
        self._view: FleetView | None = None
        self._arrangement = Arrangement(group=group)
        # Made here and not queried: a look may come before the screen is composed, and while the app ends.
        self._bar = TopBar(about, now=now)
        self._summary, self._choice = LineView(id="summary"), LineView(id="arrangement")
        self._table = FleetTable()
        self._logs = LineView(id="logs", follows=True)
        self._filter = Input(placeholder=_FILTER_HINT, compact=True)

    @property
    def arrangement(self) -> Arrangement:
        return self._arrangement

    def compose(self) -> ComposeResult:
        yield self._bar
        yield self._summary
        yield self._choice
        yield self._table
        self._logs.border_title = "Log: the last 10 lines of each"
        yield self._logs
        yield self._filter
        yield KeyFooter()

    def on_mount(self) -> None:
        self.set_palette(self._palette)
        self._show()

    def look(self, view: FleetView) -> None:
        """Show another look."""
        self._view = view
        self._bar.note_look(view.at, problem=view.problem)
        self._show()

    def note_problem(self, problem: str) -> None:
        """Why the newest values could not be had; the last known ones stay."""
        self._bar.note_problem(problem)

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        for view in (self._bar, self._summary, self._choice, self._logs, self._table):
            view.set_palette(palette)

    def on_screen_resume(self) -> None:
        """Another screen was closed. Textual would keep the drawings of its widgets until 1,024 others were drawn."""
        StylesCache.get_inner_outer.cache_clear()

    def on_resize(self, event: events.Resize) -> None:
        self._show()

    def on_fleet_table_opened(self, event: FleetTable.Opened) -> None:
        self.post_message(DetailWanted(event.id))

    def on_fleet_table_header_clicked(self, event: FleetTable.HeaderClicked) -> None:
        how = self._arrangement
        if how.sort_by == event.title:
            self._arrange(replace(how, is_reversed=not how.is_reversed))
        else:
            self._arrange(replace(how, sort_by=event.title, is_reversed=False))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._arrange(replace(self._arrangement, text=event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._end_filtering()

    def action_open(self) -> None:
        cursor = self._table.cursor
        if cursor is not None:
            self.post_message(DetailWanted(cursor))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A slash within the filter is text."""
        return action != "filter" or not self._filter.has_focus

    def action_filter(self) -> None:
        """At once: the next key belongs to the text already."""
        self._filter.styles.display = "block"
        self.set_focus(self._filter)

    def action_sort(self) -> None:
        how = self._arrangement
        names: list[str | None] = [None, *self._table.sortable]
        self._arrange(replace(how, sort_by=next_of(names, how.sort_by), is_reversed=False))

    def action_reverse(self) -> None:
        self._arrange(replace(self._arrangement, is_reversed=not self._arrangement.is_reversed))

    def action_group(self) -> None:
        groups = self._view.groups if self._view else (ALL,)
        self._arrange(replace(self._arrangement, group=next_of(groups, self._arrangement.group) or ALL))

    def action_clear_logs(self) -> None:
        self._logs.show(())
        self.post_message(LogsCleared())

    def action_reset(self) -> None:
        """Escape leaves the filter first, then the order and the group."""
        if self._filter.display or self._arrangement.text:
            self._filter.value = ""
            self._end_filtering()
        else:
            self._arrange(Arrangement())

    def action_move(self, count: int) -> None:
        self._table.move_cursor(count)

    def action_act(self, action: str) -> None:
        cursor = self._table.cursor
        if cursor is not None:
            self.post_message(ActionWanted(cursor, Action(action)))

    def _end_filtering(self) -> None:
        self._filter.styles.display = "none"
        self.set_focus(self._table)

    def _arrange(self, how: Arrangement) -> None:
        self._arrangement = how
        self._table.set_sort(how.sort_by, is_reversed=how.is_reversed)
        self._show()

    def _show(self) -> None:
        if self._view is None:
            return
        view, how, width = self._view, self._arrangement, self.size.width
        key = self._table.sort_key(how.sort_by)
        rows = arranged(view.rows, how, None if key is None else key.column.sort)
        self._table.show(rows)
        self._summary.show(summary_lines(view.summary, width=width))
        self._choice.show([view_line(view, how, shown=len(rows))])
        shown = {row.id for row in rows}
        self._logs.show([entry.line for entry in view.logs if entry.id in shown])
