"""The worker that carries out what a command has submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stationmaster.cli.context import options_of

if TYPE_CHECKING:
    from stationmaster.control.background import Running
    from stationmaster.station.local import LocalStation


def worker_for(context: typer.Context, station: LocalStation) -> tuple[Running, bool]:
    """A live worker that can do what this command's settings allow, and whether it was started just now.

    One that somebody runs in a terminal is not ended; what it lacks is told.
    """
    from stationmaster.control.abilities import abilities_of, lacking
    from stationmaster.control.background import ensure_worker

    ours = abilities_of(station.settings)
    worker, started = ensure_worker(station.settings.home, options_of(context).for_worker(), abilities=ours)
    if not started and worker.abilities is not None and (missing := lacking(ours, worker.abilities)):
        typer.echo(f"note: the worker (pid {worker.pid}) was started without: {', '.join(missing)}", err=True)
        typer.echo("hint: a job that needs it waits until that worker is started anew from here", err=True)
    return worker, started
