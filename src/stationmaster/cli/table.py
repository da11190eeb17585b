"""Tables of text that fit the terminal: narrower columns first, then fewer. In a pipe or a file nothing is left out."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stationmaster.cli.speaking import coloured, is_quiet, write_drawn
from stationmaster.printable import one_line

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False  # numbers are compared from the right
    #: Where the terminal is too narrow, the columns with the highest number are left out first; 0 always stays.
    leaves: int = 0
    #: The width to which longer texts may be cut; None: they are never cut.
    shrinks_to: int | None = None
    #: Whether `--quiet` prints this column alone; without such a column it is the first.
    names_row: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A text in a colour."""

    text: str
    colour: str = ""


Row = Sequence["str | Cell"]


def print_table(columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Print the rows below the titles, as wide as the terminal allows; with `--quiet` only their names."""
    if is_quiet():
        place = next((place for place, column in enumerate(columns) if column.names_row), 0)
        for row in rows:
            write_drawn(_cell(row[place]).text)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in table_lines(columns, rows, width=width):
        write_drawn(line)


def table_lines(columns: Sequence[Column], rows: Iterable[Row], *, width: int | None) -> Iterator[str]:
    """The lines of a table that is at most `width` cells wide, as far as its columns allow.

    >>> for line in table_lines([Column("ID"), Column("NAME", shrinks_to=6)], [("7f3k2q9a", "a long name")], width=16):
    ...     print(line)
    ID        NAME
    7f3k2q9a  a lon…
    """
    cells = [[_cell(value) for value in row] for row in rows]
    sizes = [
        max(cell_width(column.title), *(cell_width(row[place].text) for row in cells)) if cells else len(column.title)
        for place, column in enumerate(columns)
    ]
    shown = _fitting(columns, sizes, width)
    titles = [Cell(column.title, "dim") for column in columns]
    for row in (titles, *cells):
        yield _line([(columns[place], row[place], size) for place, size in shown.items()])


def cell_width(text: str) -> int:
    """How many cells of a terminal the text takes: two for a wide character, none for a combining one.

    >>> cell_width("cats"), cell_width("猫")
    (4, 2)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _cell(value: str | Cell) -> Cell:
    cell = value if isinstance(value, Cell) else Cell(value)
    return Cell(one_line(cell.text), cell.colour)


def _fitting(columns: Sequence[Column], natural: Sequence[int], width: int | None) -> dict[int, int]:
    """The places of the columns that are shown, and how wide each is."""
    sizes = dict(enumerate(natural))
    while width is not None and _shrunk(columns, sizes, width) > width:
        leaving = max(sizes, key=lambda place: columns[place].leaves)
        if not columns[leaving].leaves:
            break
        sizes = {place: natural[place] for place in sizes if place != leaving}
    return sizes


def _shrunk(columns: Sequence[Column], sizes: dict[int, int], width: int) -> int:
    """Make columns smaller until they fit or cannot be made smaller; returns the width of all."""
    while (whole := sum(sizes.values()) + _GAP * (len(sizes) - 1)) > width:
        spare = {place: size - _least(columns[place], size) for place, size in sizes.items()}
        place = max(spare, key=lambda one: spare[one])
        if not spare[place]:
            break
        sizes[place] -= min(spare[place], whole - width)
    return whole


def _least(column: Column, size: int) -> int:
    return size if column.shrinks_to is None else min(size, max(column.shrinks_to, len(column.title)))


def _line(cells: Sequence[tuple[Column, Cell, int]]) -> str:
    words = []
    for place, (column, cell, size) in enumerate(cells):
        text = cut_cells(cell.text, size)
        pad = " " * (size - cell_width(text))
        is_last = place == len(cells) - 1
        shown = coloured(text, cell.colour) if text else text
        words.append(pad + shown if column.right else shown if is_last else shown + pad)
    return (" " * _GAP).join(words).rstrip()


def cut_cells(text: str, cells: int, *, mark: str = "…") -> str:
    """The text in at most this many cells, with a mark where its end is missing.

    >>> cut_cells("downloading", 8), cut_cells("cats", 8)
    ('downloa…', 'cats')
    """
    if cell_width(text) <= cells:
        return text
    kept, used = "", cell_width(mark)
    for letter in text:
        used += cell_width(letter)
        if used > cells:
            break
        kept += letter
    return kept + mark
