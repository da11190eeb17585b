"""`stationmaster adopt`: look at a training that was started by hand, confirm, and watch it like any job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, print_sentences, station_of
from stationmaster.cli.live import follow
from stationmaster.cli.render import job_json
from stationmaster.cli.submitting import announce, submit_confirmed
from stationmaster.errors import UserError
from stationmaster.printable import one_line
from stationmaster.station.adopting import AdoptRequest, StopSignal
from stationmaster.station.proposals import Terms
from stationmaster.times import time_text

_SIGNALS: tuple[StopSignal, ...] = ("TERM", "INT", "HUP", "USR1", "USR2")


def adopt(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="INSTANCE|HOST", help="Number of a rented instance, [USER@]HOST[:PORT], or own host."),
    ],
    log: Annotated[str, typer.Option(metavar="GLOB", help="Its log on the machine; the newest file that matches.")],
    output: Annotated[str, typer.Option(metavar="DIR", help="Its folder of checkpoints on the machine.")],
    pid_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File on the machine with its process id. Default: who writes the log."),
    ] = None,
    release: Annotated[
        bool, typer.Option("--release", help="Destroy the instance once the model is safe here.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the model. Default: the output folder's.")] = None,
    provider: Annotated[str | None, typer.Option("--provider", "--driver", help="Provider of the instance.")] = None,
    account: Annotated[str | None, typer.Option(help="Account at the provider, if there are several.")] = None,
    job_id: Annotated[str | None, typer.Option("--id", help="Id of the job.")] = None,
    max_hours: Annotated[
        float | None,
        typer.Option(help="Stop the training after this many hours. Default: never; 72 with --release."),
    ] = None,
    stop_signal: Annotated[
        str, typer.Option(metavar="SIGNAL", help="What a stop sends: TERM, INT, HUP, USR1 or USR2.")
    ] = "TERM",
    stop_when_stalled: Annotated[
        bool, typer.Option("--stop-when-stalled", help="Stop a stalled training; by default a stall only alerts.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show the job live until it ends.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look at the machine; make no job.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch a training that was started by hand, and fetch its model.

    Nothing is started, and without --release nothing of the machine is changed. Quote the pattern of --log.

    Examples:

      stationmaster adopt ann@gpu.example.org --log '~/run/*.log' --pid-file ~/run/pid --output ~/run/out --watch

      stationmaster adopt 7835610 --log '/workspace/logs/*.log' --output /workspace/output --release
    """
    as_json = as_json or options_of(context).as_json
    request = AdoptRequest(
        target=target,
        log=log,
        output=output,
        pid_file=pid_file,
        release=release,
        name=name,
        provider=provider,
        account=account,
        id=job_id,
        max_hours=max_hours,
        stop_signal=_signal(stop_signal),
        stop_when_stalled=stop_when_stalled,
    )
    with station_of(context) as station:
        if dry_run:
            return _print_terms(station.proposals.check(request), now=station.now(), as_json=as_json)
        submitted = submit_confirmed(
            context,
            station,
            request,
            shown=lambda terms: () if as_json else adoption_lines(terms, now=station.now()),
            confirm=lambda terms: _confirm(terms, yes=yes),
        )
        if not as_json:
            announce(submitted, "watches it")
        if watch:
            raise typer.Exit(follow(station, submitted.job.id, as_json=as_json, notes=submitted.notes))
        if as_json:
            print_json({**job_json(station.jobs.view(submitted.job.id)), "notes": list(submitted.notes)})
    return None


def adoption_lines(terms: Terms, *, now: float) -> Iterator[str]:
    """What was found and what will be done, as text."""
    training = terms.adopted
    assert training is not None, "terms of an adoption name its training"
    yield f"{one_line(terms.name)}: a training on {one_line(training.target)}"
    if training.pid is None:
        yield "  process not identified"
    else:
        since = "" if training.started_at is None else f", started {time_text(training.started_at, now=now)}"
        yield f"  process {training.pid} ({one_line(training.command)}){since}"
    if training.rented_at is not None:
        yield f"  machine instance {training.instance}, rented since {time_text(training.rented_at, now=now)}"
    for note in terms.notes:
        yield f"  {one_line(note)}"


def _signal(given: str) -> StopSignal:
    plain = given.upper().removeprefix("SIG")
    found = next((each for each in _SIGNALS if each == plain), None)
    if found is None:
        raise UserError(f"{given!r} is not a signal that a training can be stopped with", hint=", ".join(_SIGNALS))
    return found


def _confirm(terms: Terms, *, yes: bool) -> str | None:
    training = terms.adopted
    destroys = training is not None and training.release
    if yes:
        return None
    if not sys.stdin.isatty():
        raise UserError("adopting needs confirmation, but stdin is not a terminal", hint="pass --yes")
    question = "Watch it, and destroy the machine at its end?" if destroys else "Watch it?"
    if not typer.confirm(question):
        raise typer.Exit(0)
    return None


def _print_terms(terms: Terms, *, now: float, as_json: bool) -> None:
    if as_json:
        from stationmaster.station.wire.proposals import TermsDocument

        return print_json(TermsDocument.of(terms).model_dump(mode="json"))
    print_sentences(adoption_lines(terms, now=now))
    typer.echo("dry run: no job was made")
    return None
