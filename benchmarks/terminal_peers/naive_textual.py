"""A Textual table, cleared and filled again each second: python naive_textual.py MACHINES SECONDS_BETWEEN."""

from __future__ import annotations

import sys

from textual.app import App, ComposeResult
from textual.widgets import DataTable, Footer

from terminal_peers.changing_cells import COLUMNS, rows


class NaiveTable(App[None]):
    BINDINGS = [("q", "quit", "Quit")]  # noqa: RUF012 (a class variable of Textual)

    def __init__(self, machines: int, between: float) -> None:
        super().__init__()
        self._machines = machines
        self._between = between
        self._second = 0

    def compose(self) -> ComposeResult:
        yield DataTable[str](cursor_type="row")
        yield Footer()

    def on_mount(self) -> None:
        self._table.add_columns(*COLUMNS)
        self._fill()
        self.set_interval(self._between, self._fill)

    def _fill(self) -> None:
        self._second += 1
        self._table.clear()
        self._table.add_rows(rows(self._machines, self._second))

    @property
    def _table(self) -> DataTable[str]:
        found: DataTable[str] = self.query_one(DataTable)
        return found


if __name__ == "__main__":
    NaiveTable(int(sys.argv[1]), float(sys.argv[2])).run()
