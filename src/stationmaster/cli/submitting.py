"""Propose, confirm, submit: the only way in which `train`, `retry` and `adopt` make jobs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from stationmaster.cli.context import options_of, print_sentences
from stationmaster.cli.offer_table import choose_offer
from stationmaster.cli.person import Person, TerminalPerson, ask_yes_or_no
from stationmaster.cli.progress_lines import show_dataset
from stationmaster.cli.speaking import hint, is_quiet, note
from stationmaster.errors import StationmasterError, UserError
from stationmaster.model import Job
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.base import Station
from stationmaster.station.local.processes import HelpingWorker
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import Asked, Proposal, Terms, TrainRequest

OfferOption = Annotated[
    str | None, typer.Option("--offer", metavar="ID", help="Rent this offer, as `offers` lists it; default: the best.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The result of a request. A job that already existed has no notes."""

    job: Job
    created: bool
    notes: tuple[str, ...] = ()
    started_worker: str | None = None  # a sentence, if one was started for it


def announce(submitted: Submission, happened: str, *, is_watched: bool = False) -> None:
    """Print what became of the request (`happened`, if the job is new) and how to follow it; quietly, the id alone."""
    job_id = submitted.job.id
    if is_quiet():
        typer.echo(job_id)
        return
    typer.echo(f"job {job_id} {happened if submitted.created else 'already exists; nothing was changed'}")
    if submitted.started_worker is not None:
        typer.echo(submitted.started_worker)
    if not is_watched:
        typer.echo(f"follow it: stationmaster watch {job_id}")


def nothing_shown(_terms: Terms) -> Iterable[str]:
    """For a command whose output is JSON."""
    return ()


def submit_confirmed(
    context: typer.Context,
    station: Station,
    request: Asked,
    *,
    shown: Callable[[Terms], Iterable[str]],
    yes: bool = False,
    confirm: Callable[[Terms], str | None] | None = None,
    person: Person | None = None,
) -> Submission:
    """Submit the job exactly as it was proposed, shown and confirmed, and make sure that a worker runs it.

    A server has its own worker. `confirm` asks the person and returns the offer that they chose, if there were several;
    by default it asks about the price, unless `yes`.
    """
    here = station if isinstance(station, LocalStation) else None
    there = None if request.id is None else station.jobs.with_id(request.id)
    if there is not None:
        return Submission(job=there, created=False, started_worker=_ensure_worker_note(context, here, is_new=False))
    dataset = request.dataset if isinstance(request, TrainRequest) else None
    with show_dataset(dataset, uploads=here is None, hidden=bool(context.params.get("as_json"))) as bars:
        proposal = station.proposals.propose(request, progress=bars.progress, packing=bars.packing)
    with withdraw_if_left(station, proposal):
        asks = confirm is not None or not (yes or not proposal.terms.quote.cost_high)
        if asks or not is_quiet():  # a question about money shows what it is about
            print_sentences(shown(proposal.terms))
        if confirm is not None:
            offer = confirm(proposal.terms)
        else:
            offer = _confirm_price(proposal.terms, person or TerminalPerson(), request, yes=yes)
        is_new = here is not None and prepare_worker(context, here)
        accepted = station.proposals.submit(proposal.id, offer=offer)
        started_worker = _ensure_worker_note(context, here, is_new=is_new)
    return Submission(
        job=accepted.job,
        created=accepted.created,
        notes=(proposal.terms if offer is None else proposal.terms.on(offer)).notes,
        started_worker=started_worker,
    )


@contextlib.contextmanager
def withdraw_if_left(station: Station, proposal: Proposal) -> Iterator[None]:
    """Withdraw the proposal if the person declines or leaves before the job is queued.

    If they leave just after, print that the job is queued: it costs money from then on.
    """
    try:
        yield
    except BaseException:
        with contextlib.suppress(StationmasterError):  # an open proposal expires on its own
            if (job := station.jobs.with_id(proposal.job_id)) is None:
                station.proposals.withdraw(proposal.id)
            else:
                note(f"job {job.id} is already queued")
                hint(f"to cancel it, run stationmaster cancel {job.id}")
        raise


def _confirm_price(terms: Terms, person: Person, request: Asked, *, yes: bool) -> str | None:
    """Continue only if the person agrees, and return the offer that they chose; a job that costs nothing needs no
    question.
    """
    if yes or not terms.quote.cost_high:
        return None
    if not sys.stdin.isatty():
        raise UserError("this costs money: confirmation needed, but stdin is not a terminal", hint="pass --yes")
    if terms.offers:
        return choose_offer(terms, person, asked=None if isinstance(request, AdoptRequest) else request.offer)
    if not ask_yes_or_no(person, "Go ahead?", default=False, option="--yes"):
        raise typer.Exit(0)
    return None


def prepare_worker(context: typer.Context, station: LocalStation) -> bool:
    """Before a job is written: replace a live worker that has other settings than this command.

    Returns whether a new one was started. Raises UserError for one that would count a job's money by other rules.
    """
    prepared = station.processes.prepare_worker(options_of(context).for_worker())
    if prepared.other_settings:
        others = ", ".join(prepared.other_settings)
        note(f"the worker had other settings and was replaced: {others}")
    return prepared.is_new


def ensure_worker(context: typer.Context, station: LocalStation) -> HelpingWorker:
    """A live worker that can do what this command's settings allow.

    One that runs in a terminal is not stopped; a note prints what it lacks.
    """
    worker = station.processes.helping_worker(options_of(context).for_worker())
    if worker.missing:
        note(f"the worker (pid {worker.pid}) was started without: {', '.join(worker.missing)}")
        hint("restart that worker from here; jobs that need this wait until then")
    if worker.other_settings:
        others = ", ".join(worker.other_settings)
        note(f"the worker (pid {worker.pid}) runs with other settings: {others}")
    return worker


def _ensure_worker_note(context: typer.Context, station: LocalStation | None, *, is_new: bool) -> str | None:
    if station is None or (not is_new and station.processes.is_served_elsewhere()):
        return None
    worker = ensure_worker(context, station)
    if not is_new and not worker.is_new:
        return None
    return f"worker started in the background (pid {worker.pid}, log {worker.log})"
