"""What `train --watch`, `watch JOB` and `demo` print once a job has its outcome."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence

from stationmaster.cli.job_facts import (
    NextStep,
    cost_text,
    model_places,
    next_lines,
    next_steps,
    rented_text,
    samples_text,
)
from stationmaster.cli.render import health_text
from stationmaster.cli.sparklines import loss_text
from stationmaster.durations import format_duration
from stationmaster.lifecycle import TERMINAL
from stationmaster.model import Outcome
from stationmaster.printable import one_line
from stationmaster.station.jobs import JobView

_LABEL = 10
_PIPE_WIDTH = 80


def summary_lines(view: JobView, *, trend: Sequence[float], more: Sequence[NextStep] = ()) -> Iterator[str]:
    """The outcome and why, loss, time, cost, where the model is, whether the machine is gone, what to do next.

    `more` steps of the command itself come last.
    """
    yield _headline(view)
    width = (shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH) - _LABEL
    for label, text in _facts(view, trend=trend, width=width):
        yield f"{label:<{_LABEL}}{one_line(text)}"
    steps = [*next_steps(view), *more]
    if steps:
        yield "next"
        yield from next_lines(steps, width=width + _LABEL)


def _headline(view: JobView) -> str:
    """`COMPLETED: cats (7f3k2q9a), 600 of 600 steps in 4m10s`"""
    job, progress = view.job, view.job.progress
    words = f"{view.shown}: {one_line(job.spec.name)} ({job.id})"
    if progress.step is not None:
        words += f", {progress.step}{f' of {progress.total_steps}' if progress.total_steps else ''} steps"
    return f"{words}, {format_duration(view.taken_seconds)} after it was submitted"


def _facts(view: JobView, *, trend: Sequence[float], width: int) -> Iterator[tuple[str, str]]:
    job, progress = view.job, view.job.progress
    if job.outcome is not Outcome.COMPLETED and job.reason:
        yield "reason", f"{job.reason}" + (f": {job.explanation}" if job.explanation else "")
    elif job.explanation:
        yield "note", job.explanation
    if loss := loss_text(trend, first=progress.first_loss, last=progress.finite_loss, width=min(width, 60)):
        yield "loss", loss
    if rented := rented_text(view):
        yield "time", rented
    yield "cost", cost_text(view)
    places = model_places(view)
    yield from (("model", place) for place in places)
    if not places:
        yield "model", "none was saved"
    if samples := samples_text(view):
        yield "samples", samples
    if view.rentals:
        yield "machine", _machine(view)
    if view.health is not None:
        yield "analysis", health_text(view.health)


def _machine(view: JobView) -> str:
    if all(rental.gone_at is not None for rental in view.rentals) and view.job.state in TERMINAL:
        adopted = view.job.spec.adopted
        if adopted is not None and not adopted.release:
            return "left as it is"
        return "destroyed, confirmed by the provider"
    return f"still being released; check with stationmaster show {view.job.id}"
