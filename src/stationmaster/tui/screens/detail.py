"""One training or machine in detail: its facts, its curves, and its lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input

from stationmaster.tui import keys
from stationmaster.tui.lines import Line, line
from stationmaster.tui.messages import ActionWanted, SearchWanted
from stationmaster.tui.palette import Palette
from stationmaster.tui.sources.base import About, Action, Detail
from stationmaster.tui.widgets.chart import Chart
from stationmaster.tui.widgets.key_footer import KeyFooter
from stationmaster.tui.widgets.line_view import LineView
from stationmaster.tui.widgets.top_bar import TopBar

_MOST_FACTS = 8
_CHART_SHARE = 0.3
_LEAST_CHART, _MOST_CHART = 5, 16
_LOG = "Log"


class DetailScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.COMMON, keys.DETAIL, keys.ABOUT_THE_APP, keys.ACTIONS)
    DEFAULT_CSS = """
    DetailScreen { layout: vertical; }
    DetailScreen TopBar { height: 1; }
    DetailScreen #facts { height: 4; }
    DetailScreen #curves { height: 8; }
    DetailScreen #tabs { height: 1; }
    DetailScreen Input { height: 1; border: none; padding: 0; display: none; }
    """
    AUTO_FOCUS = ""

    def __init__(self, about: About, palette: Palette, id: str, *, now: Callable[[], float]) -> None:
        super().__init__()
        self.shown_id = id
        self._about = about
        self._palette = palette
        self._detail: Detail | None = None
        self._tab = _LOG
        self._searched: str | None = None
        self._found: Sequence[Line] = ()
        # Made here and not queried: a look may come before the screen is composed, and while it is closed.
        self._bar = TopBar(about, now=now)
        self._facts, self._tabs, self._body = (
            LineView(id="facts"),
            LineView(id="tabs"),
            LineView(id="body", follows=True),
        )
        self._curves = Chart(id="loss"), Chart(id="memory")
        self._search = Input(placeholder="text in the log; Enter searches, Escape closes", compact=True)

    @property
    def tab(self) -> str:
        return self._tab

    def compose(self) -> ComposeResult:
        yield self._bar
        yield self._facts
        with Horizontal(id="curves"):
            yield from self._curves
        yield self._tabs
        yield self._body
        yield self._search
        yield KeyFooter()

    def on_mount(self) -> None:
        self.set_palette(self._palette)
        if self._detail is None:
            self._bar.set_title(f"{self._about.title}: {self.shown_id}")
        self._arrange()
        self._show()

    def look(self, detail: Detail) -> None:
        self._detail = detail
        self._bar.set_title(detail.title)
        self._bar.note_look(detail.at)
        self._show()

    def show_found(self, text: str, lines: Sequence[Line]) -> None:
        """The result of a search, in place of the log until Escape."""
        self._searched, self._found, self._tab = text, lines, _LOG
        self._show()

    def note_problem(self, problem: str) -> None:
        """Why the newest values could not be had; the last known ones stay."""
        self._bar.note_problem(problem)

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        for view in (self._bar, self._facts, *self._curves, self._tabs, self._body):
            view.set_palette(palette)

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()
        self._show()

    def on_click(self, event: events.Click) -> None:
        if event.widget is not None and event.widget.id == "tabs":
            x = 0
            for name in self._names():
                x += len(name) + 3
                if event.x < x:
                    self._open_tab(name)
                    return

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._end_searching()
        if event.value.strip():
            self.post_message(SearchWanted(self.shown_id, event.value.strip()))

    def action_back(self) -> None:
        """Escape leaves the search first, then its result, then the screen."""
        if self._search.display:
            self._end_searching()
        elif self._searched is not None:
            self._searched = None
            self._show()
        else:
            self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A slash within the search is text."""
        return action != "search" or not self._search.has_focus

    def action_search(self) -> None:
        """At once: the next key belongs to the text already."""
        self._search.styles.display = "block"
        self.set_focus(self._search)

    def action_tab(self, number: int) -> None:
        names = self._names()
        if number < len(names):
            self._open_tab(names[number])

    def action_next_tab(self, count: int) -> None:
        names = self._names()
        if names:
            place = names.index(self._tab) if self._tab in names else 0
            self._open_tab(names[(place + count) % len(names)])

    def action_scroll(self, count: int) -> None:
        self._body.scroll_lines(count)

    def action_act(self, action: str) -> None:
        self.post_message(ActionWanted(self.shown_id, Action(action)))

    def _names(self) -> list[str]:
        return list(self._detail.tabs) if self._detail else []

    def _open_tab(self, name: str) -> None:
        self._tab = name
        self._show()
        # A log is read from its end, a list of recommendations from its beginning.
        self._body.scroll_lines(10**6 if name in (_LOG, "Events") else -(10**6))

    def _end_searching(self) -> None:
        self._search.styles.display = "none"
        self.set_focus(None)

    def _arrange(self) -> None:
        """Share the height: on a small screen the charts stay readable and the lists keep half of it."""
        if self.is_mounted:
            height = round(self.size.height * _CHART_SHARE)
            self.query_one("#curves").styles.height = max(_LEAST_CHART, min(_MOST_CHART, height))

    def _show(self) -> None:
        detail = self._detail
        if detail is None:
            return
        facts = detail.facts[:_MOST_FACTS]
        height = self._facts.styles.height
        if height is None or height.value != len(facts):
            self._facts.styles.height = len(facts)
        self._facts.show(facts)
        for chart, curve in zip(self._curves, detail.curves, strict=True):
            chart.draw(curve)
        if self._tab not in detail.tabs:
            self._tab = next(iter(detail.tabs))
        self._tabs.show([self._tab_line(detail)])
        body = self._body
        if self._searched is not None and self._tab == _LOG:
            body.show(self._found or [line("no line contains it", "dim")])
        else:
            body.show(detail.tabs[self._tab])

    def _tab_line(self, detail: Detail) -> Line:
        spans = [
            (f" {number} {name} "[: len(name) + 3], "tab" if name == self._tab else "dim")
            for number, name in enumerate(detail.tabs, start=1)
        ]
        if self._searched is not None and self._tab == _LOG:
            spans.append((f"  {len(self._found)} lines with “{self._searched}”, Escape closes", "accent"))
        return tuple(spans)
