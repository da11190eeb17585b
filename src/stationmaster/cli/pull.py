"""`stationmaster pull`: copy what a job brought home."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import JobArgument, JsonOption, options_of, print_json, station_of
from stationmaster.cli.printing import printable


def pull(
    context: typer.Context,
    job: JobArgument,
    target: Annotated[Path, typer.Argument(metavar="[DIR]", help="Target folder.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Copy a job's model, samples and logs to a folder.

    Each copy is verified. In DIR, each file has the path that it had in the job's folder on the machine
    (output/cats.safetensors); files of earlier attempts are in attempt-1, attempt-2. Existing files are overwritten.

    Examples:

      stationmaster pull 7f3k2q9a

      stationmaster pull cats ./models/cats
    """
    with station_of(context) as station:
        copies = station.artifacts.pull(station.jobs.find(job).id, target)
        if as_json or options_of(context).as_json:
            print_json({"files": [str(copy) for copy in copies]})
        else:
            for copy in copies:
                typer.echo(printable(str(copy)))
