"""The list of jobs: printed once, or kept up to date until Ctrl-C."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence

import typer

from stationmaster.cli.context import print_json
from stationmaster.cli.pausing import pause
from stationmaster.cli.render import job_json, progress_share, speed_text, stage_text
from stationmaster.cli.speaking import note, redraw, write_drawn
from stationmaster.cli.table import Cell, Column, Row, print_table, table_lines
from stationmaster.durations import format_duration
from stationmaster.lifecycle import seconds_without_step
from stationmaster.model import Outcome
from stationmaster.station.jobs import JobView
from stationmaster.times import time_text

COLUMNS = (
    Column("ID"),
    Column("NAME", shrinks_to=8),
    Column("STATE"),
    Column("STAGE", leaves=3, shrinks_to=12),
    Column("PROGRESS"),
    Column("LOSS", right=True, leaves=1),
    Column("SPEED", right=True, leaves=4),
    Column("ETA", right=True, leaves=2),
    Column("SUBMITTED", leaves=5),
)
_COLOURS = {
    Outcome.COMPLETED: "green",
    Outcome.INCOMPLETE: "yellow",
    Outcome.FAILED: "red",
    Outcome.FAILED_PROVISIONING: "red",
    Outcome.CANCELLED: "dim",
}

Look = Callable[[], Sequence[JobView]]


def job_row(view: JobView) -> Row:
    job, progress = view.job, view.job.progress
    is_silent = seconds_without_step(progress, now=view.now) is not None  # then the last speed and ETA mean nothing
    return (
        job.id,
        job.spec.name,
        Cell(view.shown, _COLOURS[job.outcome] if job.outcome else "cyan"),
        stage_text(view),
        progress_share(progress),
        "" if progress.loss is None else f"{progress.loss:.3f}",
        "" if is_silent or not progress.steps_per_second else speed_text(progress.steps_per_second),
        "" if is_silent or progress.eta_seconds is None else format_duration(progress.eta_seconds),
        time_text(job.created_at, now=view.now),
    )


def print_jobs(views: Sequence[JobView], *, everything: bool) -> None:
    if not views:
        typer.echo(_nothing(everything=everything))
        return
    print_table(COLUMNS, map(job_row, views))
    for view in views:
        for alert in view.alerts:
            if alert.kind == "not_served":
                note(f"{view.job.id}: {alert.message}")


def watch_jobs(look: Look, *, interval: float, everything: bool, as_json: bool) -> None:
    """Look at the interval until Ctrl-C: a terminal shows the table in one place, a pipe gets the jobs that changed."""
    try:
        if as_json:
            _print_changed_json(look, interval)
        elif sys.stdout.isatty():
            _redraw(look, interval, everything=everything)
        else:
            _print_changed_rows(look, interval)
    except KeyboardInterrupt:
        return


def _redraw(look: Look, interval: float, *, everything: bool) -> None:
    drawn = 0
    while True:
        size = shutil.get_terminal_size()
        views = look()
        lines = list(table_lines(COLUMNS, map(job_row, views), width=size.columns)) if views else []
        lines = lines or [_nothing(everything=everything)]
        room = max(2, size.lines - 2)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… and {len(lines) - room + 1} more; a higher window shows them"]
        redraw(lines, over=drawn)
        drawn = len(lines)
        pause(interval)


def _print_changed_rows(look: Look, interval: float) -> None:
    """The table once, then a line for each job whose state or progress changed."""
    known: dict[str, object] = {}
    has_titles = False
    while True:
        views = look()
        titles, *lines = table_lines(COLUMNS, map(job_row, views), width=None)
        changed = [line for view, line in zip(views, lines, strict=True) if known.get(view.job.id) != _state(view)]
        for line in changed if has_titles else [titles, *changed]:
            write_drawn(line)
        sys.stdout.flush()
        has_titles = True
        known = {view.job.id: _state(view) for view in views}
        pause(interval)


def _print_changed_json(look: Look, interval: float) -> None:
    known: dict[str, object] = {}
    while True:
        views = look()
        for view in views:
            if known.get(view.job.id) != _state(view):
                print_json(job_json(view), indent=None)
        sys.stdout.flush()
        known = {view.job.id: _state(view) for view in views}
        pause(interval)


def _state(view: JobView) -> object:
    """What is worth a new line: not the clock and not each step."""
    percent = view.job.progress.percent
    return view.shown, view.stage, view.job.attempt, None if percent is None else int(percent)


def _nothing(*, everything: bool) -> str:
    return "no jobs; start with `stationmaster demo`" if everything else "no running jobs; --all shows ended ones"
