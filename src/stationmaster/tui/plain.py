"""The fleet as plain text: a table for pipes and files, and sentences for screen readers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stationmaster.durations import format_duration
from stationmaster.money import format_dollars
from stationmaster.tui.columns import UNKNOWN, cell, fitted, layout, percent
from stationmaster.tui.fleet import FleetRow, FleetSummary, FleetView

_TABLE_WIDTH = 80
_WIDE_TABLE = 140


def table_lines(view: FleetView, *, is_wide: bool = False) -> Iterator[str]:
    """A header, one line per row, and the summary."""
    columns = layout(_WIDE_TABLE if is_wide else _TABLE_WIDTH)
    yield "".join(
        fitted(each.column.short or each.column.title, each.width, is_right=each.column.is_right)
        + " " * (each.column.title != "")
        for each in columns
    ).rstrip()
    for row in view.rows:
        cells = (cell(row, each) + " " * (each.column.title != "") for each in columns)
        yield "".join(cells).rstrip()
    yield summary_sentence(view.summary)


def row_sentence(row: FleetRow) -> str:
    """Everything about one row in words, in the order of the table, without signs that cannot be read out."""
    name = f"{row.name}, " if row.name else ""
    words = [f"{row.id}: {name}{row.status}{f', {row.tone.value}' if row.tone.value in ('warning', 'bad') else ''}"]
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
    words += [row.note] if row.note else []
    return ", ".join(words)


def changed_sentences(before: Mapping[str, str], rows: Iterable[FleetRow]) -> Iterator[tuple[str, str]]:
    """(id, sentence) of each row whose sentence is another one than before."""
    for row in rows:
        sentence = row_sentence(row)
        if before.get(row.id) != sentence:
            yield row.id, sentence


def summary_sentence(summary: FleetSummary) -> str:
    money = f"{format_dollars(summary.total_cost)} so far, {format_dollars(summary.cost_per_hour, 3)} per hour"
    future = ", ".join(f"{format_dollars(amount)} in {hours} h" for hours, amount in summary.trajectory)
    return (
        f"running {summary.running}/{summary.total}, errors {summary.errors}; {money} "
        f"(average {format_dollars(summary.average_cost_per_hour, 3)}); GPU {percent(summary.gpu_percent)}, "
        f"memory {percent(summary.memory_percent)}; if all keep running: {future}"
    )
