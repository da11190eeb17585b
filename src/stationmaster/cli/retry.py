"""`stationmaster retry`: submit an ended job again."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JobArgument, JsonOption, options_of, print_json, station_of
from stationmaster.cli.render import job_json, terms_lines
from stationmaster.cli.submitting import submit_confirmed
from stationmaster.station.proposals import RetryRequest


def retry(
    context: typer.Context,
    job: JobArgument,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the old job's best checkpoint.")] = False,
    new_id: Annotated[str | None, typer.Option("--id", help="Id of the new job.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Submit an ended job again, as a new job at today's price.

    The new job has its own attempts and its own outcome.

    Examples:

      stationmaster retry 7f3k2q9a

      stationmaster retry cats --resume --yes
    """
    as_json = as_json or options_of(context).as_json
    with station_of(context) as station:
        request = RetryRequest(job=job, resume=resume, id=new_id)
        submitted = submit_confirmed(
            context, station, request, shown=lambda terms: () if as_json else terms_lines(terms), yes=yes
        )
        job_id = submitted.job.id
        if as_json:
            return print_json({**job_json(station.jobs.view(job_id)), "notes": list(submitted.notes)})
        result = (
            f"submitted, a retry of {submitted.job.spec.retry_of}"
            if submitted.created
            else "already exists; nothing was changed"
        )
        typer.echo(f"job {job_id} {result}")
        typer.echo(f"follow it: stationmaster watch {job_id}")
    return None
