"""`stationmaster watch`: a job, live."""

from __future__ import annotations

import typer

from stationmaster.cli.context import JobArgument, JsonOption, options_of, station_of
from stationmaster.cli.live import follow


def watch(context: typer.Context, job: JobArgument, as_json: JsonOption = False) -> None:
    """Show a job live until it ends.

    The exit code is that of the job's outcome.

    Examples:

      stationmaster watch 7f3k2q9a

      stationmaster watch cats --json
    """
    with station_of(context) as station:
        found = station.jobs.find(job)
        raise typer.Exit(follow(station, found.id, as_json=as_json or options_of(context).as_json))
