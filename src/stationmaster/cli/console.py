"""Rich's console, on which text that others wrote is only text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from stationmaster.cli.terminal_output import unguarded
from stationmaster.printable import printable


class PrintableConsole(Console):
    """Standard output. Its own colours and cursor moves reach the terminal, escapes within a text do not."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(file=unguarded(sys.stdout), markup=False, highlight=False, emoji=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
