"""Proposing, asking, submitting: `train` and `retry` spend money only this way."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import typer

from stationmaster.cli.fetching import shown_progress
from stationmaster.cli.helping_worker import prepare_worker, worker_for
from stationmaster.errors import StationmasterError, UserError
from stationmaster.model import Job, Quote
from stationmaster.station.base import Station
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import Proposal, RetryRequest, Terms, TrainRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What came of a request. A job that was there already under its id has no notes."""

    job: Job
    created: bool
    notes: tuple[str, ...] = ()
    started_worker: str | None = None  # a sentence, if one was started for it


def submit_confirmed(
    context: typer.Context,
    station: LocalStation,
    request: TrainRequest | RetryRequest,
    *,
    shown: Callable[[Terms], Iterable[str]],
    yes: bool,
) -> Submission:
    """The job, as it was proposed, shown and agreed to; a worker is there for it."""
    there = None if request.id is None else station.jobs.with_id(request.id)
    if there is not None:
        return Submission(job=there, created=False, started_worker=_worker(context, station, is_new=False))
    with shown_progress(request.dataset if isinstance(request, TrainRequest) else None) as progress:
        proposal = station.proposals.propose(request, progress=progress)
    with settled_if_left(station, proposal):
        for line in shown(proposal.terms):
            typer.echo(line)
        _confirm_price(proposal.terms.quote, yes=yes)
        is_new = prepare_worker(context, station)
        accepted = station.proposals.submit(proposal.id)
        started_worker = _worker(context, station, is_new=is_new)
    return Submission(
        job=accepted.job, created=accepted.created, notes=proposal.terms.notes, started_worker=started_worker
    )


@contextlib.contextmanager
def settled_if_left(station: Station, proposal: Proposal) -> Iterator[None]:
    """Someone who says no, or leaves before the job is queued, leaves nothing behind; someone who leaves just after
    it is told that it is queued, since it costs money from then on.
    """
    try:
        yield
    except BaseException:
        with contextlib.suppress(StationmasterError):  # an open proposal expires on its own
            if (job := station.jobs.with_id(proposal.job_id)) is None:
                station.proposals.withdraw(proposal.id)
            else:
                typer.echo(f"note: job {job.id} is already queued", err=True)
                typer.echo(f"hint: to take it back, run stationmaster cancel {job.id}", err=True)
        raise


def _confirm_price(quote: Quote, *, yes: bool) -> None:
    """Go on only if the person wants to; what costs nothing needs no question."""
    if yes or not quote.cost_high:
        return
    if not sys.stdin.isatty():
        raise UserError("this costs money: confirmation needed, but stdin is not a terminal", hint="pass --yes")
    if not typer.confirm("Go ahead?"):
        raise typer.Exit(0)


def _worker(context: typer.Context, station: LocalStation, *, is_new: bool) -> str | None:
    worker = worker_for(context, station)
    if not is_new and not worker.is_new:
        return None
    return f"worker started in the background (pid {worker.pid}, log {worker.log})"
