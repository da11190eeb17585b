"""A plain Rich live table, made anew each second: python rich_live.py MACHINES SECONDS_BETWEEN."""

from __future__ import annotations

import sys
import time

from rich.live import Live
from rich.table import Table

from terminal_peers.changing_cells import COLUMNS, rows


def main() -> None:
    machines, between = int(sys.argv[1]), float(sys.argv[2])
    second = 0
    with Live(_table(machines, second), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(between)
            second += 1
            live.update(_table(machines, second), refresh=True)


def _table(machines: int, second: int) -> Table:
    table = Table(box=None)
    for column in COLUMNS:
        table.add_column(column)
    for row in rows(machines, second):
        table.add_row(*row)
    return table


if __name__ == "__main__":
    main()
