"""Tables as text: one row per step under a header, or one row per value (`step`, `name`, `value`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime

from stationmaster.errors import UserError
from stationmaster.parsers.names import meaning_of
from stationmaster.series.sources.recording import Recording, Scalar, finite, step_number

_DELIMITERS = ",;\t|"
_TIMES = (
    "timestamp",
    "_timestamp",
    "wall_time",
    "wall time",
    "walltime",
    "time",
    "datetime",
    "date",
    "created_at",
    "at",
)
_NO_VALUES = frozenset({"_step", "_runtime", "relative", "epoch", "id", "job_id", "attempt", "table"})
#: Times before the year 2001 are counted from the start of the run, not by a clock.
_EARLIEST = 1e9
_LONGEST_CELL = 1 << 17


def read_csv(text: str) -> Recording:
    """The values of every column that has numbers, by step. A cell that is no number is an unknown value.

    Raises UserError, with the line, when there is no column with the step.
    """
    text = text.removeprefix("\ufeff")
    heading = text[: text.find("\n") if "\n" in text else None]
    delimiter = max(_DELIMITERS, key=heading.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        names = [name.strip() for name in next(rows, [])]
        step = _step_column(names)
        time = next((place for place, name in enumerate(names) if name.lower() in _TIMES), None)
        lower = [name.lower() for name in names]
        long = (lower.index("name"), lower.index("value")) if {"name", "value"} <= set(lower) else None
        scalars: list[Scalar] = []
        skipped = 0
        for row in rows:
            if not row:
                continue
            number = _number(row[step], delimiter) if step < len(row) else None
            known = None if number is None else step_number(number)
            if known is None:
                skipped += 1
                continue
            at = _instant(row[time], delimiter) if time is not None and time < len(row) else None
            if long is not None:
                scalars += _long_value(row, known, at, places=long, delimiter=delimiter)
            else:
                scalars += [
                    Scalar(name, known, at, _number(cell, delimiter))
                    for place, (name, cell) in enumerate(zip(names, row, strict=False))
                    if place not in (step, time) and name and cell.strip() and name.lower() not in _NO_VALUES
                ]
    except csv.Error as problem:
        raise UserError(f"line {rows.line_num}: {problem}", hint="the file must be a table with a header") from problem
    numbers = {scalar.name for scalar in scalars if scalar.value is not None}  # a column of texts is no series
    notes = (f"{skipped} row(s) without a step were left out",) if skipped else ()
    return Recording(scalars=[scalar for scalar in scalars if scalar.name in numbers], notes=notes)


def has_step_column(heading: str) -> bool:
    """Whether the first line of a text is the header of such a table."""
    delimiter = max(_DELIMITERS, key=heading.count)
    try:
        return _find_step(next(csv.reader([heading], delimiter=delimiter), [])) is not None
    except csv.Error:
        return False


def _step_column(names: Sequence[str]) -> int:
    found = _find_step(names)
    if found is None:
        shown = ", ".join(name for name in names if name)[:200] or "nothing"
        raise UserError(
            f"line 1: no column with the step; the header has {shown}",
            hint="name one of the columns `step` in the first line",
        )
    return found


def _find_step(names: Sequence[str]) -> int | None:
    """The place of the step: a global step before a plain one, an epoch if there is no step."""
    ranked: list[tuple[int, int]] = []
    for place, name in enumerate(names):
        means = meaning_of(name.strip().lower().removeprefix("_"))
        if means.step is not None:
            ranked.append((means.step, place))
        elif means.is_epoch:
            ranked.append((10, place))
    return min(ranked)[1] if ranked else None


def _long_value(
    row: Sequence[str], step: int, at: float | None, *, places: tuple[int, int], delimiter: str
) -> list[Scalar]:
    name_at, value_at = places
    if max(places) >= len(row) or not row[name_at].strip():
        return []
    return [Scalar(row[name_at].strip(), step, at, _number(row[value_at], delimiter))]


def _number(cell: str, delimiter: str) -> float | None:
    cell = cell.strip()
    if delimiter != "," and "," in cell and "." not in cell:  # 0,5 as some countries write it
        cell = cell.replace(",", ".")
    if len(cell) > _LONGEST_CELL or "_" in cell:
        return None
    try:
        return finite(float(cell))
    except ValueError:
        return None


def _instant(cell: str, delimiter: str) -> float | None:
    number = _number(cell, delimiter)
    if number is None:
        try:
            found = datetime.fromisoformat(cell.strip())
            number = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return number if number >= _EARLIEST else None
