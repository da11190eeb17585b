"""The worker that carries out what a command has submitted."""

from __future__ import annotations

import typer

from stationmaster.cli.context import options_of
from stationmaster.station.local.processes import HelpingWorker
from stationmaster.station.local.station import LocalStation


def prepare_worker(context: typer.Context, station: LocalStation) -> bool:
    """Before a job is written: a live worker has this command's settings, or makes room for one that has.

    Whether one was started for that. Raises UserError for one that would count a job's money by other rules.
    """
    prepared = station.processes.prepare_worker(options_of(context).for_worker())
    if prepared.other_settings:
        others = ", ".join(prepared.other_settings)
        typer.echo(f"note: the worker had other settings and was replaced: {others}", err=True)
    return prepared.is_new


def worker_for(context: typer.Context, station: LocalStation) -> HelpingWorker:
    """A live worker that can do what this command's settings allow.

    One that somebody runs in a terminal is not ended; what it lacks is told.
    """
    worker = station.processes.helping_worker(options_of(context).for_worker())
    if worker.missing:
        typer.echo(f"note: the worker (pid {worker.pid}) was started without: {', '.join(worker.missing)}", err=True)
        typer.echo("hint: a job that needs it waits until that worker is started anew from here", err=True)
    if worker.other_settings:
        others = ", ".join(worker.other_settings)
        typer.echo(f"note: the worker (pid {worker.pid}) runs with other settings: {others}", err=True)
    return worker
