"""The worker that carries out what a command has submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stationmaster.cli.context import options_of

if TYPE_CHECKING:
    from stationmaster.control.background import Running
    from stationmaster.station.local.station import LocalStation


def prepare_worker(context: typer.Context, station: LocalStation) -> bool:
    """Before a job is written: a live worker has this command's settings, or makes room for one that has.

    Whether one was started for that. A worker that can do neither goes on, but gets no job whose money it would count
    by other rules: raises UserError.
    """
    from stationmaster.control.abilities import differing, digests_of, of_money
    from stationmaster.control.background import worker_after_reread
    from stationmaster.control.settings_source import files_changed_at
    from stationmaster.errors import UserError

    home, ours = station.settings.home, digests_of(station.settings)
    changed_at = files_changed_at(options_of(context).environ, home)
    found = worker_after_reread(home, ours, changed_at=changed_at)
    if found is None:
        return False
    worker, started = _fitting_worker(context, station)
    others = [] if found.settings is None else differing(ours, found.settings)
    if started:
        if others:
            typer.echo(f"note: the worker had other settings and was replaced: {', '.join(others)}", err=True)
        return True
    if money := of_money(others):
        raise UserError(
            f"the worker (pid {worker.pid}) runs with other settings than this command: {', '.join(money)}",
            hint=f"write them into {home / 'config.toml'}, which it reads by itself, or start it anew from here",
        )
    return False


def worker_for(context: typer.Context, station: LocalStation) -> tuple[Running, bool]:
    """A live worker that can do what this command's settings allow, and whether it was started just now.

    One that somebody runs in a terminal is not ended; what it lacks is told.
    """
    from stationmaster.control.abilities import abilities_of, differing, digests_of, lacking

    worker, started = _fitting_worker(context, station)
    if started:
        return worker, started
    if worker.abilities is not None and (missing := lacking(abilities_of(station.settings), worker.abilities)):
        typer.echo(f"note: the worker (pid {worker.pid}) was started without: {', '.join(missing)}", err=True)
        typer.echo("hint: a job that needs it waits until that worker is started anew from here", err=True)
    if worker.settings is not None and (others := differing(digests_of(station.settings), worker.settings)):
        typer.echo(f"note: the worker (pid {worker.pid}) runs with other settings: {', '.join(others)}", err=True)
    return worker, started


def _fitting_worker(context: typer.Context, station: LocalStation) -> tuple[Running, bool]:
    from stationmaster.control.abilities import abilities_of, digests_of
    from stationmaster.control.background import ensure_worker

    return ensure_worker(
        station.settings.home,
        options_of(context).for_worker(),
        abilities=abilities_of(station.settings),
        settings=digests_of(station.settings),
    )
