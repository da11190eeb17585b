"""A curve in a corner of the screen, drawn again only when it changed."""

from __future__ import annotations

from textual import events

from stationmaster.tui.braille import Curve, chart_lines
from stationmaster.tui.widgets.line_view import LineView


class Chart(LineView):
    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._curve: Curve | None = None

    def draw(self, curve: Curve) -> None:
        if curve != self._curve:
            self._curve = curve
            self._show_curve()

    def on_resize(self, event: events.Resize) -> None:
        self._show_curve()

    def _show_curve(self) -> None:
        if self._curve is not None and self.size.width > 0:
            self.show(chart_lines(self._curve, width=self.size.width - 1, height=self.size.height))
