"""One job as text on one screen: what it is, how it is, what it cost, where its model is, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from stationmaster.cli.job_facts import cost_text, model_places, next_steps, other_checkpoints, rented_text
from stationmaster.cli.render import gib_of, health_text, progress_text, stage_text, starting_text, transfer_text
from stationmaster.cli.sparklines import loss_text
from stationmaster.durations import format_duration
from stationmaster.lifecycle import STAGES
from stationmaster.model import AdoptedTraining
from stationmaster.printable import one_line
from stationmaster.station.jobs import JobView
from stationmaster.times import clock_text, time_text

Fact = tuple[str, str]
"""A label of at most ten letters, and what it says."""

_SCREEN_LINES = 24
_FEW = (3, 2, 1)  # entries of a long list that are shown, until all fits
_ALL = 1_000_000
_INDENT = 12
_WIDE = 80


def view_lines(
    view: JobView,
    *,
    trend: Sequence[float] = (),
    whole: bool = False,
    width: int | None = None,
    with_next: bool = True,
) -> list[str]:
    """One job as text: on one screen, or `whole`, with all machines, alerts and checkpoints.

    `trend` is its loss. On a terminal of this `width` long sentences are wrapped; elsewhere a fact is a line.
    """

    def lines(most: int) -> list[str]:
        facts = _facts(view, most=most, trend=trend, width=(width or _WIDE) - _INDENT, with_next=with_next)
        return [f"{one_line(view.job.spec.name)} ({view.job.id})", *_laid_out(facts, width, None if whole else most)]

    found = lines(_ALL if whole else _FEW[0])
    for most in () if whole else _FEW[1:]:
        if len(found) >= _SCREEN_LINES:  # one line is for the prompt
            found = lines(most)
    return found


def _laid_out(facts: Iterator[Fact], width: int | None, most: int | None) -> Iterator[str]:
    for label, text in facts:
        line = f"  {label:<9} {one_line(text)}"
        if width is None or len(line) <= width:
            yield line
            continue
        wrapped = textwrap.wrap(
            line, max(40, width - 1), subsequent_indent=" " * _INDENT, break_long_words=False, break_on_hyphens=False
        )
        yield from wrapped if most is None else wrapped[:most]
        if most is not None and len(wrapped) > most:
            yield f"{' ' * _INDENT}… (--all)"


def _facts(view: JobView, *, most: int, trend: Sequence[float], width: int, with_next: bool) -> Iterator[Fact]:
    job, progress = view.job, view.job.progress
    yield from _state(view)
    yield "recipe", f"{job.spec.recipe} on {job.spec.provider}, attempt {job.attempt}"
    if job.spec.adopted is not None:
        yield from _adopted(job.spec.adopted, most)
    if job.spec.retry_of:
        yield "retry of", job.spec.retry_of
    changes = [f"{one_line(one.change)}, as recommended ({one_line(one.config_path)})" for one in job.spec.applied]
    yield from _few("changed", changes, most)
    if job.spec.owner:
        yield "owner", job.spec.owner
    yield "submitted", _times(view)
    if progress.step is not None:
        yield "progress", progress_text(progress, now=view.now)
    if job.machine.transfer is not None and not job.outcome:
        yield "transfer", transfer_text(job.machine.transfer)
    if loss := loss_text(trend, first=progress.first_loss, last=progress.finite_loss, width=width):
        yield "loss", loss
    if view.health is not None:
        yield "analysis", health_text(view.health)
    yield from (("model", place) for place in model_places(view))
    yield from _few("checkpoint", other_checkpoints(view), most if most == _ALL else 0)
    if view.trained is not None:
        note = view.trained.registration.note
        yield "catalogue", view.trained.slug + (f", {note}" if note else "")
    yield "cost", cost_text(view)
    if job.outcome and (rented := rented_text(view)):
        yield "time", rented
    if view.peak_gpu_gib is not None:
        predicted = job.spec.quote.memory_expected_gib
        beside = "" if predicted is None else f" (predicted {predicted:.1f} GiB)"
        yield "memory", f"{gib_of(view.peak_gpu_gib, view.gpu_gib)} at the peak{beside}"
    yield from _machines(view, most)
    yield from _few("alert", [alert.message for alert in view.alerts], most)
    if with_next:
        yield from (("next", f"stationmaster {step.command}") for step in [*next_steps(view)][: min(most, 2)])


def _state(view: JobView) -> Iterator[Fact]:
    job = view.job
    yield "state", view.shown + (f" for {format_duration(view.now - job.state_since)}" if not job.outcome else "")
    if view.stage in STAGES:
        yield "stage", f"{stage_text(view)} ({STAGES.index(view.stage) + 1} of {len(STAGES)})"
    if job.machine.waits_for and not job.outcome:
        yield "waits", job.machine.waits_for
    if (message := starting_text(view)) is not None:
        yield "machine", message
    if job.outcome and job.reason:
        yield "reason", f"{job.reason}" + (f": {job.explanation}" if job.explanation else "")
    if job.outcome and job.state != "ENDED":
        yield "release", "the machine is still being released"


def _times(view: JobView) -> str:
    began = time_text(view.job.created_at, now=view.now)
    if view.job.ended_at is None:
        return began
    return f"{began}, ended {time_text(view.job.ended_at, now=view.now)}"


def _few(label: str, texts: Sequence[str], most: int) -> Iterator[Fact]:
    """The first ones, and how many there are more."""
    shown = texts[:most]
    yield from ((label, text) for text in shown)
    if more := len(texts) - len(shown):
        yield label, f"{more} more; --all lists {'it' if more == 1 else 'them'}"


def _machines(view: JobView, most: int) -> Iterator[Fact]:
    """The last machine, and each that may still bill."""
    last = view.rentals[-1:]
    shown = [one for one in view.rentals if most == _ALL or one.gone_at is None or one in last]
    for rental in shown:
        yield "machine", f"{rental.provider_id or '?'} {rental.state} ({rental.label})"
    if more := len(view.rentals) - len(shown):
        yield "machine", f"{more} more, gone; --all lists {'it' if more == 1 else 'them'}"


def _adopted(training: AdoptedTraining, most: int) -> Iterator[Fact]:
    """The training that a job watches and did not start, and what cannot be known of it."""
    who = "a process that is not known" if training.pid is None else f"process {training.pid}"
    command = f" ({one_line(training.command)})" if training.command else ""
    yield "adopted", f"{who}{command} on {one_line(training.target)}"
    yield "reads", f"{one_line(training.log)}, models below {one_line(training.output or '?')}"
    if training.instance is not None:
        fate = "destroyed when the training is over" if training.release else "left as it is"
        yield "instance", f"{training.instance}, {fate}"
    yield from _few("not known", training.unknown, most)


def dated_lines(sentences: Sequence[tuple[float, str]], *, now: float) -> Iterator[str]:
    """Sentences below a job, each with its time."""
    times = [clock_text(at, now=now) for at, _ in sentences]
    width = max(map(len, times), default=0)
    for at, (_, text) in zip(times, sentences, strict=True):
        yield f"  {at:<{width}}  {text}"
