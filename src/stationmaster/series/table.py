"""Rows of one table, held by column.

table = table_from_json("StepMetric", {"id": [1, 2], "step": [10, 20], "timestamp": [5.0, 6.0], "loss": [0.5, None]})
table.values("loss")    # [0.5, None]
table.numbers("loss")   # [0.5, nan], for arithmetic
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from typing import Any, Union, cast

from stationmaster.series.schema import OWN_TABLES, TABLES, Kind, required_columns

NO_INTEGER = -(2**63)
"""Stands for None in a column of integers, as NaN does in a column of reals."""

LONGEST_TEXT = 200
LONGEST_DETAILS = 10_000
_LARGEST_INTEGER = 2**53  # whole numbers up to here are exact as floats too

Value = float | int | str | None
Column = Union["array[float]", "array[int]", tuple[str | None, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table's columns, all of the same length: reals as array('d'), integers as array('q'), texts as a tuple.

    A column that was not measured or not loaded is missing and reads as None in every row.
    """

    name: str
    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.as_lists() == other.as_lists() and self.name == other.name

    __hash__ = None  # type: ignore[assignment]  # its arrays can change

    def values(self, column: str) -> list[Any]:
        """Return a column's values, None where there is none."""
        held = self.columns.get(column)
        if held is None:
            return [None] * len(self)
        if isinstance(held, tuple):
            return list(held)
        if held.typecode == "d":
            return [None if value != value else value for value in held]
        return [None if value == NO_INTEGER else value for value in held]

    def numbers(self, column: str) -> Sequence[float]:
        """Return a column of numbers, NaN where there is none. The column itself where possible: do not change it."""
        held = self.columns.get(column)
        if held is None or isinstance(held, tuple):
            return array("d", [math.nan]) * len(self)
        if held.typecode == "d" or column in required_columns(self.name) or NO_INTEGER not in held:
            return held
        return array("d", (math.nan if number == NO_INTEGER else number for number in held))

    def as_lists(self) -> dict[str, list[Value]]:
        """Return the columns as lists, in the table's order: what `table_from_json` reads."""
        return {name: self.values(name) for name in TABLES[self.name] if name in self.columns}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a mapping from column to value."""
        names = list(self.columns)
        for values in zip(*(self.values(name) for name in names), strict=True):
            yield dict(zip(names, values, strict=True))

    def tuples(self, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield these values of each row."""
        return zip(*(self.values(column) for column in columns), strict=True)

    def where(self, column: str, value: Value) -> Table:
        """Return the rows with this value in a column."""
        return self.picked([each == value for each in self.values(column)])

    def picked(self, wanted: Sequence[bool]) -> Table:
        """Return the rows for which `wanted` is true."""
        return Table(self.name, {name: _picked(held, wanted) for name, held in self.columns.items()})

    def head(self, count: int) -> Table:
        """Return the first rows."""
        return self.between(0, count)

    def between(self, first: int, after: int) -> Table:
        """Return the rows from number `first`, counted from zero, to the one before `after`."""
        return Table(self.name, {name: held[first:after] for name, held in self.columns.items()})

    def parts(self, size: int) -> Iterator[Table]:
        """Yield the rows in tables of at most `size` rows."""
        for first in range(0, len(self), size):
            yield self.between(first, first + size)

    def with_steps_moved(self, offset: int) -> Table:
        """Return the table with `offset` added to its steps, for a trainer that counts from zero after a resume."""
        if not offset:
            return self
        columns = dict(self.columns)
        steps, details = columns.get("step"), columns.get("details")
        if isinstance(steps, array):
            columns["step"] = array("q", (_within_range(int(step) + offset) for step in steps))
        if isinstance(details, tuple):
            columns["details"] = tuple(_with_step_moved(text, offset) for text in details)
        return Table(self.name, columns)


def table_from_json(name: object, columns: object, *, most_values: int = 10_000_000) -> Table | None:
    """Return the rows of one table that a machine sent as columns; None if they cannot be used.

    The sender is not trusted. Unknown columns are ignored, a value of the wrong type becomes None, texts are cut, and a
    row that lacks a required value is dropped. Lists of different lengths, an unknown table or more than `most_values`
    values give None.
    """
    if not isinstance(name, str) or name not in TABLES or name in OWN_TABLES or not isinstance(columns, Mapping):
        return None
    sent = {known: columns[known] for known in TABLES[name] if known in columns}
    if not all(isinstance(values, list) for values in sent.values()):
        return None
    lengths = {len(values) for values in sent.values()}
    if len(lengths) != 1 or lengths == {0} or sum(map(len, sent.values())) > most_values:
        return None
    if not all(required in sent for required in required_columns(name)):
        return None
    table = table_of(name, sent)
    return table if len(table) else None


def table_of(name: str, columns: Mapping[str, Sequence[object]]) -> Table:
    """Return the table of these values, checked as in `table_from_json`; all columns are known and equally long."""
    held = {known: _column(name, known, columns[known]) for known in TABLES[name] if known in columns}
    table = Table(name, held)
    for column in required_columns(name):
        if column not in table.columns or _has_gaps(table.columns[column]):
            table = table.picked([value is not None for value in table.values(column)])
    return table


def joined(tables: Sequence[Table]) -> Table:
    """Return the rows of several tables of the same name, in their order; there is at least one."""
    first = tables[0]
    if len(tables) == 1:
        return first
    names = [name for name in TABLES[first.name] if any(name in table.columns for table in tables)]
    return Table(first.name, {name: _joined_column(first.name, name, tables) for name in names})


def _column(table: str, name: str, values: Sequence[object]) -> Column:
    kind = TABLES[table][name]
    if kind is Kind.REAL:
        return _reals(values)
    if kind is Kind.INTEGER:
        return _integers(values)
    if name == "details":
        return tuple(_text(_fitting_json(value), LONGEST_DETAILS) for value in values)
    return tuple(_text(value, LONGEST_TEXT) for value in values)


def _reals(values: Sequence[object]) -> array[float]:
    """Return a column of reals. Most columns hold nothing but floats, which are not looked at one by one."""
    if set(map(type, values)) == {float}:
        column = array("d", cast("Sequence[float]", values))
        if math.isfinite(sum(column)):
            return column
    return array("d", map(_real, values))


def _integers(values: Sequence[object]) -> array[int]:
    if set(map(type, values)) == {int}:
        integers = cast("Sequence[int]", values)
        if min(integers) >= -_LARGEST_INTEGER and max(integers) <= _LARGEST_INTEGER:
            return array("q", integers)
    return array("q", map(_integer, values))


def _has_gaps(held: Column) -> bool:
    if isinstance(held, tuple):
        return None in held
    if held.typecode == "q":
        return NO_INTEGER in held
    total = sum(held)
    return total != total


def _real(value: object) -> float:
    if type(value) is float:
        return value if math.isfinite(value) else math.nan
    if type(value) is int and abs(value) <= _LARGEST_INTEGER:
        return float(value)
    return math.nan


def _integer(value: object) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and abs(value) <= _LARGEST_INTEGER else NO_INTEGER


def _within_range(value: int) -> int:
    return value if abs(value) <= _LARGEST_INTEGER else NO_INTEGER


def _fitting_json(value: object) -> object:
    """Return the details of an event without their longest parts where they are too long: half a JSON is none."""
    if not isinstance(value, str) or len(value) <= LONGEST_DETAILS:
        return value
    try:
        details = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if not isinstance(details, dict):
        return value
    parts = sorted((f"{json.dumps(name)}: {json.dumps(part)}" for name, part in details.items()), key=len)
    lengths = accumulate(len(part) + 2 for part in parts)  # with the comma and the space
    return f"{{{', '.join(part for part, length in zip(parts, lengths, strict=True) if length < LONGEST_DETAILS)}}}"


def _text(value: object, longest: int) -> str | None:
    if not isinstance(value, str):
        return None
    text = value[:longest]
    # NUL and lone surrogates can be neither stored nor printed everywhere.
    return text if text.isascii() and "\0" not in text else text.replace("\0", "?").encode(errors="replace").decode()


def _picked(held: Column, wanted: Sequence[bool]) -> Column:
    return tuple(compress(held, wanted)) if isinstance(held, tuple) else array(held.typecode, compress(held, wanted))


def _joined_column(table: str, name: str, tables: Sequence[Table]) -> Column:
    kind = TABLES[table][name]
    if kind is Kind.TEXT:
        return tuple(value for each in tables for value in each.values(name))
    missing = array("d", [math.nan]) if kind is Kind.REAL else array("q", [NO_INTEGER])
    whole = array(missing.typecode)
    for each in tables:
        held = each.columns.get(name)
        whole.extend(missing * len(each) if held is None else held)  # type: ignore[arg-type]  # of the same kind
    return whole


def _with_step_moved(details: str | None, offset: int) -> str | None:
    """The details of an event, JSON, with their step moved."""
    try:
        found = json.loads(details or "")
    except ValueError:
        return details
    if not isinstance(found, dict) or type(found.get("step")) is not int:
        return details
    return json.dumps({**found, "step": found["step"] + offset}, separators=(",", ":"))
