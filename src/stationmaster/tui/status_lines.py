"""The lines above and below the table: summary, arrangement, log. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from stationmaster.money import format_dollars
from stationmaster.tui.columns import percent
from stationmaster.tui.fleet import ALL, Arrangement, FleetSummary, FleetView
from stationmaster.tui.lines import Line, Span

_WIDE = 90


def summary_lines(summary: FleetSummary, *, width: int) -> list[Line]:
    """Two lines: how many run and what they cost, then the averages and what they will have cost."""
    first: list[Span] = [
        (f"Running {summary.running}/{summary.total}", "title"),
        (f"  errors {summary.errors}", "bad" if summary.errors else ""),
        (f"  {format_dollars(summary.total_cost)} so far", ""),
        (f"  {format_dollars(summary.cost_per_hour, 3)}/h", "title"),
        (f" (average {format_dollars(summary.average_cost_per_hour, 3)}/h)", "dim"),
    ]
    future = ", ".join(f"{hours}h {format_dollars(amount)}" for hours, amount in summary.trajectory)
    second: list[Span] = [
        (f"GPU {percent(summary.gpu_percent)}  memory {percent(summary.memory_percent)}", ""),
        (f"  cost {'if all keep running' if width >= _WIDE else 'then'}: {future}", "dim"),
    ]
    return [tuple(first), tuple(second)]


def view_line(view: FleetView, how: Arrangement, *, shown: int) -> Line:
    """The groups, and how the rows are chosen and sorted."""
    return tuple(_view_spans(view, how, shown=shown))


def _view_spans(view: FleetView, how: Arrangement, *, shown: int) -> Iterator[Span]:
    if len(view.groups) > 1:
        for name in view.groups:
            yield f" {name} ", "tab" if name == how.group else "dim"
        yield "  ", ""
    if shown != len(view.rows):
        yield f"{shown} of {len(view.rows)}  ", "title"
    if how.text:
        yield f"filter: {how.text}  ", "accent"
    if how.sort_by:
        yield f"sorted by {how.sort_by}{' downwards' if how.is_reversed else ''}", "dim"
    if not view.rows:
        yield "nothing to show yet", "dim"
    elif not shown:
        yield "no row fits; Escape shows all", "warning"
    elif how.group != ALL and len(view.groups) <= 1:
        yield how.group, "dim"
