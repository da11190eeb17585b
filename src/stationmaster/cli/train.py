"""`stationmaster train`: propose, confirm, submit, and watch if asked to."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, given_path, options_of, print_json, print_lines, station_of
from stationmaster.cli.conversation import ask_for_missing, needs_questions
from stationmaster.cli.live import follow
from stationmaster.cli.person import TerminalPerson, can_converse
from stationmaster.cli.progress_lines import show_dataset
from stationmaster.cli.recipe_options import given_parameters, parse_pairs
from stationmaster.cli.render import job_json, quote_lines
from stationmaster.cli.repeatable import train_command
from stationmaster.cli.submitting import OfferOption, Submission, announce, nothing_shown, submit_confirmed
from stationmaster.station.base import Station
from stationmaster.station.job_file import AskedMachine, JobFile, invalid_as_user_error, read_job_file
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import Terms, TrainRequest


def train(
    context: typer.Context,
    job_file: Annotated[
        Path | None,
        typer.Argument(
            parser=given_path, metavar="[JOB.yaml]", help="Job file with these options.", show_default=False
        ),
    ] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "--tool", help="Recipe to run, e.g. tiny-lora@1.")] = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Folder, .tar or .zip file, s3://BUCKET/PREFIX, hf://datasets/OWNER/NAME."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    trigger: Annotated[str | None, typer.Option(help="Word that stands for the subject in prompts.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps to train.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="Parameter of the recipe; also --NAME VALUE."),
    ] = None,
    provider: Annotated[str | None, typer.Option("--provider", "--driver", help="Provider of the machine.")] = None,
    account: Annotated[str | None, typer.Option(help="Account at the provider, if there are several.")] = None,
    gpus: Annotated[
        int | None, typer.Option(min=0, max=64, help="GPUs of the machine; by default as many as the recipe needs.")
    ] = None,
    offer: OfferOption = None,
    job_id: Annotated[
        str | None, typer.Option("--id", help="Id of the job; submitting it again changes nothing.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="User who gets the notifications; see `users`. Default: you.")
    ] = None,
    max_price: Annotated[str | None, typer.Option(help="Maximum price per hour, in dollars.")] = None,
    max_hours: Annotated[float | None, typer.Option(help="Stop after this many hours and keep the model.")] = None,
    max_spend: Annotated[str | None, typer.Option(help="Maximum cost of the job, in dollars.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show the job live until it ends.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands and config files; rent nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model; asks you to confirm the price first.

    On a terminal, it asks for what you leave out, shows the best offers with time and cost, and lets you choose one.
    In a script, pass all values, and --yes if it costs money.

    A recipe's parameters are options too: `stationmaster train --recipe tiny-lora@1 --help` shows them.

    Examples:

      stationmaster train

      stationmaster train --recipe tiny-lora@1 --dataset ./cats --name cats --trigger ohwx --watch

      stationmaster train job.yaml --dry-run
    """
    as_json = as_json or options_of(context).as_json
    written = JobFile() if job_file is None else read_job_file(job_file)
    with invalid_as_user_error():
        given = JobFile(
            recipe=recipe,
            dataset=dataset,
            name=name,
            trigger=trigger,
            steps=steps,
            parameters={**given_parameters(context), **parse_pairs(parameter or [])},
            provider=provider,
            account=account,
            id=job_id,
            owner=owner,
            max_price=max_price,
            max_hours=max_hours,
            max_spend=max_spend,
            machine=None if gpus is None else AskedMachine(gpus=gpus),
            offer=offer,
        )
    is_asked = needs_questions(written.overlaid(given)) and can_converse(as_json=as_json, yes=yes)
    if not is_asked:
        written.overlaid(given).request()  # what is wrong with it is said before anything is opened
    with station_of(context) as station:
        if is_asked:
            given = given.overlaid(_ask(station, written.overlaid(given)))
            command = train_command(given, options_of(context), job_file=job_file, watch=watch, dry_run=dry_run)
            print_lines(["", "the same without questions:", f"  {command}", ""])
        request = written.overlaid(given).request()
        if dry_run:
            return _show_plan(_check(station, request, as_json=as_json), as_json=as_json)
        shown = nothing_shown if as_json else quote_lines
        submitted = submit_confirmed(context, station, request, shown=shown, yes=yes)
        _report(station, submitted, watch=watch, as_json=as_json)
    return None


def _ask(station: Station, job: JobFile) -> JobFile:
    """What the job leaves out, as the person at the terminal answers."""
    if not isinstance(station, LocalStation):  # the server chooses where it runs
        return ask_for_missing(job, station, TerminalPerson())
    from stationmaster.station.local.set_up_providers import set_up_providers

    return ask_for_missing(
        job,
        station,
        TerminalPerson(),
        providers=set_up_providers(station.settings),
        default_provider=station.settings.provider,
    )


def _check(station: Station, request: TrainRequest, *, as_json: bool) -> Terms:
    with show_dataset(request.dataset, uploads=not isinstance(station, LocalStation), hidden=as_json) as bars:
        return station.proposals.check(request, progress=bars.progress, packing=bars.packing)


def _report(station: Station, submitted: Submission, *, watch: bool, as_json: bool) -> None:
    """Print what became of the request, and follow the job if asked to. Raises typer.Exit after following."""
    if not as_json:
        announce(submitted, "submitted", is_watched=watch)
    if watch:
        raise typer.Exit(follow(station, submitted.job.id, as_json=as_json, notes=submitted.notes))
    if as_json:
        print_json({**job_json(station.jobs.view(submitted.job.id)), "notes": list(submitted.notes)})


def _show_plan(terms: Terms, *, as_json: bool) -> None:
    if as_json:
        from stationmaster.station.wire.proposals import TermsDocument

        return print_json(TermsDocument.of(terms).model_dump(mode="json"))
    print_lines(quote_lines(terms))
    for step in terms.steps:
        typer.echo(f"\n# {step.name}")
        words = [f"{name}={shlex.quote(value)}" for name, value in step.env.items()]
        typer.echo(" ".join([*words, shlex.join(step.argv)]))
    for config in terms.configs:
        typer.echo(f"\n# {config.path}\n{config.text}", nl=not config.text.endswith("\n"))
    return None
