"""The fleet as plain text: a table for pipes and files, and sentences for screen readers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stationmaster.durations import format_duration
from stationmaster.money import format_dollars
from stationmaster.tui.columns import UNKNOWN, cell, fitted, layout, percent
from stationmaster.tui.fleet import FleetRow, FleetSummary, FleetView, Tone

_LEAST_WIDTH = 80
_NUMBER = re.compile(r"[0-9.]+")
_TROUBLES = {Tone.WARNING: "warning", Tone.BAD: "error"}


def table_lines(view: FleetView, *, width: int) -> Iterator[str]:
    """A header, one line per row, and the summary."""
    columns = layout(max(_LEAST_WIDTH, width))
    yield "".join(
        fitted(each.title, each.width, is_right=each.column.is_right) + " " * (each.column.title != "")
        for each in columns
    ).rstrip()
    for row in view.rows:
        cells = (cell(row, each) + " " * (each.column.title != "") for each in columns)
        yield "".join(cells).rstrip()
    yield summary_sentence(view.summary)


def row_sentence(row: FleetRow) -> str:
    """Everything about one row in words, in the order of the table, without signs that cannot be read out."""
    name = f"{row.name}, " if row.name else ""
    trouble = _TROUBLES.get(row.tone)
    because = f" because {row.note}" if row.note else ""
    words = [f"{row.id}: {name}{row.status}{'' if trouble is None else f', {trouble}{because}'}"]
    words += [row.gpu] if row.gpu else []
    words.append(f"progress {UNKNOWN if row.progress is None else f'{row.progress:.0f}%'}")
    words += [f"epoch {row.epoch:g} of {row.total_epochs}"] if row.epoch and row.total_epochs else []
    words.append(f"GPU {percent(row.gpu_percent)}, memory {percent(row.memory_percent)}")
    words.append(f"loss {UNKNOWN if row.loss is None else f'{row.loss:.3f}'}")
    if row.cost_per_hour is not None:
        words.append(f"{format_dollars(row.cost_per_hour, 3)} per hour")
    words.append(f"{format_dollars(row.total_cost)} so far")
    words += [] if row.is_over else [f"time left {format_duration(row.eta_seconds)}"]
    words += ["old values"] if row.is_old else []
    words += [row.note] if row.note and trouble is None else []
    return ", ".join(words)


def spoken_state(row: FleetRow) -> tuple[object, ...]:
    """What makes it worth to read a row out again: status, health and whole percents, not each cent and step."""
    return (
        row.status if not row.is_old else "old",
        row.tone,
        _NUMBER.sub("", row.note),
        None if row.epoch is None else int(row.epoch),
        None if row.progress is None else int(row.progress),
    )


class SpokenRows:
    """Remembers what was read out, so that afterwards only rows that changed are."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[object, ...]] = {}

    def changed(self, rows: Iterable[FleetRow]) -> list[str]:
        """The sentences of the rows that are worth to be read out now."""
        listed = list(rows)
        states = {row.id: spoken_state(row) for row in listed}
        fresh = [row_sentence(row) for row in listed if self._said.get(row.id) != states[row.id]]
        self._said = states
        return fresh


class PrintedTable:
    """Remembers the table that was printed last, so that afterwards only its lines that changed are."""

    def __init__(self) -> None:
        self._lines = frozenset[str]()

    def changed(self, lines: Iterable[str]) -> list[str]:
        table = list(lines)
        fresh = [line for line in table if line not in self._lines]
        self._lines = frozenset(table)
        return fresh


def summary_sentence(summary: FleetSummary) -> str:
    money = f"{format_dollars(summary.total_cost)} so far, {format_dollars(summary.cost_per_hour, 3)} per hour"
    future = ", ".join(f"{format_dollars(amount)} in {hours} h" for hours, amount in summary.trajectory)
    return (
        f"running {summary.running}/{summary.total}, errors {summary.errors}; {money} "
        f"(average {format_dollars(summary.average_cost_per_hour, 3)}); GPU {percent(summary.gpu_percent)}, "
        f"memory {percent(summary.memory_percent)}; if all keep running: {future}"
    )
