"""`stationmaster logs`: what the training printed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stationmaster.cli.context import JobArgument, station_of


def logs(
    context: typer.Context,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
) -> None:
    """Print a job's log, all attempts and steps in order.

    Examples:

      stationmaster logs 7f3k2q9a

      stationmaster logs cats --follow
    """
    with station_of(context) as station:
        found = station.find(job)
        seen = _print_from(station, found.id, 0)
        if follow:
            for _ in station.watch(found.id):
                seen = _print_from(station, found.id, seen)


def _print_from(station: object, job_id: str, after: int) -> int:
    from stationmaster.station.local import LocalStation

    assert isinstance(station, LocalStation)
    while pieces := station.logs(job_id, after_seq=after):
        for seq, chunk in pieces:
            sys.stdout.buffer.write(chunk.data)
            after = seq
    sys.stdout.flush()
    return after
