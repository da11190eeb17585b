"""The attempts of a job as one run: a later attempt replaces the steps from which it resumed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import le, lt

from stationmaster.model import StepReading
from stationmaster.series.schema import TABLES
from stationmaster.series.table import Table, joined, table_of

STEP_TABLES = ("StepMetric", "StepValue")
IMPORTED = 0
"""The attempt of values that were imported from a file."""


def join_attempts(attempts: Mapping[int, Sequence[Table]]) -> dict[str, Table]:
    """Return one table of each name, from the tables of all attempts.

    The rows of a step are those of the last attempt that came to it or resumed before it; a step that an attempt
    recorded twice has its last values. Imported rows fill in the steps that no attempt recorded. All other rows are
    kept, by time.
    """
    made: dict[str, Table] = {}
    for name in TABLES:
        parts = {number: [table for table in tables if table.name == name] for number, tables in attempts.items()}
        kept = {number: joined(tables) for number, tables in parts.items() if tables}
        if _is_plain_run(kept):
            made[name] = next(iter(kept.values()))
            continue
        if name in STEP_TABLES:
            kept = _without_repeated(kept, resumed_at=_first_steps(attempts))
        whole = [kept[number] for number in sorted(kept) if len(kept[number])]
        if whole:
            made[name] = _ordered(joined(whole))
    return made


def steps_of_readings(readings: Sequence[StepReading]) -> Table:
    """Return the readings of one attempt's log as rows of StepMetric; the step time is that of the printed speed."""
    columns: dict[str, list[object]] = {
        "id": [*range(1, len(readings) + 1)],
        "step": [reading.step for reading in readings],
        "timestamp": [reading.at for reading in readings],
        "loss": [reading.loss for reading in readings],
        "learning_rate": [reading.learning_rate for reading in readings],
        "step_time_seconds": [_step_time(reading) for reading in readings],
    }
    return table_of("StepMetric", columns)


def _step_time(reading: StepReading) -> float | None:
    return 1 / reading.steps_per_second if reading.steps_per_second else None


def _is_plain_run(tables: Mapping[int, Table]) -> bool:
    """Return whether this is one attempt with every step once and in order, as most are: nothing is to be done."""
    if len(tables) != 1 or (table := next(iter(tables.values()))).name != "StepMetric":
        return False
    steps = table.numbers("step")
    return all(map(lt, steps, islice(steps, 1, None)))


def _first_steps(attempts: Mapping[int, Sequence[Table]]) -> dict[int, float]:
    """Return the first step that each attempt recorded."""
    first: dict[int, float] = {}
    for number, tables in attempts.items():
        found = [min(table.numbers("step")) for table in tables if table.name in STEP_TABLES and len(table)]
        if found:
            first[number] = min(found)
    return first


def _without_repeated(tables: Mapping[int, Table], *, resumed_at: Mapping[int, float]) -> dict[int, Table]:
    kept: dict[int, Table] = {}
    for number, table in tables.items():
        keys = _keys(table)
        last = {key: place for place, key in enumerate(keys)}
        if number == IMPORTED:
            recorded = {key for other, rows in tables.items() if other != IMPORTED for key in _keys(rows)}
            wanted = [last[key] == place and key not in recorded for place, key in enumerate(keys)]
        else:
            end = min((step for later, step in resumed_at.items() if later > number), default=math.inf)
            wanted = [last[key] == place and key[0] < end for place, key in enumerate(keys)]
        kept[number] = table if all(wanted) else table.picked(wanted)
    return kept


def _keys(table: Table) -> list[tuple[int, str | None]]:
    """Return what each row is a value of: its step and, in StepValue, its name."""
    return list(zip(table.values("step"), table.values("name"), strict=True))


def _ordered(table: Table) -> Table:
    """Return the rows by step and time, or by time alone; rows that are in order stay as they are."""
    keys = [name for name in ("step", "timestamp") if name in table.columns]
    if not keys:
        return table
    main = table.numbers(keys[0])
    if all(map(le, main, islice(main, 1, None))):
        return table
    by = list(zip(*(table.numbers(name) for name in keys), strict=True))
    places = sorted(range(len(by)), key=by.__getitem__)
    columns = {name: [values[place] for place in places] for name, values in table.as_lists().items()}
    return table_of(table.name, columns)
