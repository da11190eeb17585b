"""One job until it ends, within the lines of the terminal: a display there, one line per change elsewhere."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.live import Live

from stationmaster.cli.console import PrintableConsole
from stationmaster.cli.context import print_json, print_lines
from stationmaster.cli.end_summary import summary_lines
from stationmaster.cli.job_facts import NextStep, model_places
from stationmaster.cli.live_display import display
from stationmaster.cli.reconnecting import reconnected
from stationmaster.cli.render import EXIT_CODES, job_json, progress_text, starting_text, transfer_text
from stationmaster.cli.speaking import can_redraw, is_quiet, note
from stationmaster.errors import AlreadyEnded
from stationmaster.lifecycle import activity, seconds_without_step
from stationmaster.model import Desired
from stationmaster.station.base import Station
from stationmaster.station.jobs import JobView

_RELEASE_SECONDS = 120.0
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


def follow(
    station: Station,
    job_id: str,
    *,
    as_json: bool,
    notes: Sequence[str] | None = None,
    more: Sequence[NextStep] = (),
) -> int:
    """Show the job until it ends, then how it ended; returns the exit code of its outcome.

    Waits two minutes at most for its release. `notes` of its submission are added to the JSON, `more` to the commands
    that are proposed at the end.
    """
    try:
        view = _show(station, job_id, silent=as_json or is_quiet())
    except KeyboardInterrupt:
        return _ask_to_stop(station, job_id)
    if as_json:
        beside = {} if notes is None else {"notes": list(notes)}
        whole = station.jobs.view(job_id)  # what a server sends again and again has no heartbeats
        print_json({**job_json(whole, station.events.of_job(job_id)), **beside})
    elif view.job.outcome is not None:
        print_summary(station, job_id, more=more)
    return EXIT_CODES[view.job.outcome] if view.job.outcome else 1


def print_summary(station: Station, job_id: str, *, more: Sequence[NextStep] = ()) -> None:
    """Print how the job ended; with --quiet only where its model is."""
    view = station.jobs.view(job_id)
    if is_quiet():
        print_lines(model_places(view)[:1])
        return
    trend = () if view.job.progress.step is None else station.readings.loss_trend(job_id)
    typer.echo("")
    print_lines(summary_lines(view, trend=trend, more=more))


def _show(station: Station, job_id: str, *, silent: bool) -> JobView:
    console = PrintableConsole()
    if silent:
        return _last(_views_until_over(station, job_id, tell=note))
    if not can_redraw(sys.stdout):
        return _print_changes(_views_until_over(station, job_id, tell=note), console)
    terminal = sys.stdout  # before the display replaces it
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        # A note is printed above the display, which is then drawn again below it.
        for view in _views_until_over(station, job_id, tell=lambda text: console.print(f"note: {text}")):
            live.update(display(view, columns=console.width, stream=terminal))
    return view  # the summary follows


def _views_until_over(station: Station, job_id: str, *, tell: Callable[[str], None]) -> Iterator[JobView]:
    outcome_at: float | None = None
    for view in reconnected(lambda: station.jobs.watch(job_id), lambda: station.jobs.view(job_id), tell=tell):
        yield view
        if view.job.outcome is not None:
            outcome_at = outcome_at if outcome_at is not None else time.monotonic()
            if time.monotonic() - outcome_at > _RELEASE_SECONDS:
                return


def _last(views: Iterator[JobView]) -> JobView:
    view = next(views)
    for view in views:  # noqa: B007 (only the last one is needed)
        pass
    return view


def _print_changes(views: Iterator[JobView], console: PrintableConsole) -> JobView:
    changes = ChangeLines()
    for view in views:
        if (line := changes.next(view)) is not None:
            console.print(line, soft_wrap=True)
    return view


class ChangeLines:
    """One line per change of a job. Within a state no line is repeated, and none that differs only in a clock."""

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._shown: tuple[object, ...] = ()
        self._told: set[tuple[object, ...]] = set()

    def next(self, view: JobView) -> str | None:
        """The line of this view; None if nothing worth a line has changed."""
        job, progress, carried = view.job, view.job.progress, view.job.machine.transfer
        doing = progress.phase if activity(progress, now=view.now) else None
        if seconds_without_step(progress, now=view.now) is not None:
            doing = "no new step"
        moved = None if carried is None else 10 * carried.bytes // max(1, carried.total)
        message = starting_text(view)
        waiting = None if message is None else _DIGITS.sub("#", message)  # a counter in it is a clock, too
        state = (view.shown, job.attempt)
        if state != self._state:
            self._state = state
            self._told.clear()
        shown = (state, doing, (progress.percent or 0) // 10, moved, waiting)
        told = (doing, progress.step, moved, waiting)
        if shown == self._shown or told in self._told:
            self._shown = shown
            return None
        self._shown = shown
        self._told.add(told)
        words = [] if progress.step is None else [progress_text(progress, now=view.now)]
        words = words if carried is None else [transfer_text(carried)]
        words = [] if message is not None else words
        told_words = [each for each in (doing, message, *words) if each]
        return f"{view.shown:<18} {', '.join(told_words)}".rstrip()


def _ask_to_stop(station: Station, job_id: str) -> int:
    """After Ctrl-C the training continues, unless the person asks to stop it."""
    with _second_interrupt_ends():
        typer.echo("")
        stop = sys.stdin.isatty() and typer.confirm("Stop the training? (No: it keeps running)", default=False)
    if not stop:
        typer.echo(f"the training keeps running; follow it: stationmaster watch {job_id}")
        return 0
    try:
        print_lines([station.jobs.desire(job_id, Desired.STOP).note])
    except AlreadyEnded as ended:
        typer.echo(str(ended))
    return 0


@contextmanager
def _second_interrupt_ends() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
