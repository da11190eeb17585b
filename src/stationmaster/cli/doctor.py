"""`stationmaster doctor`: checks of this installation."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, print_lines, require_this_computer, station_of
from stationmaster.cli.systemd_unit import unit_of
from stationmaster.station.checks import WorkerService


def doctor(
    context: typer.Context,
    service: Annotated[
        bool, typer.Option("--service", help="Print a systemd user unit that keeps a worker alive.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check settings, store, worker and tools.

    Exit code 1 if a check fails. With --service, the settings in this terminal's environment are written to worker.env
    in the home, which only you can read: the unit names that file and holds no secret.

    Examples:

      stationmaster doctor

      stationmaster doctor --service > ~/.config/systemd/user/stationmaster.service
    """
    if service:
        require_this_computer(context, "doctor --service")
    with station_of(context, wake=False) as station:
        if service:
            return _print_unit(station.checks.worker_service())
        results = station.checks.results()
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.checks import CheckDocument

        print_json([CheckDocument.of(result).model_dump(mode="json") for result in results])
    else:
        for result in results:
            print_lines([f"{'ok ' if result.ok else 'BAD'}  {result.check:<10} {result.detail}"])
            if result.hint:
                typer.echo(f"     hint: {result.hint}")
    if not all(result.ok for result in results):
        raise typer.Exit(1)
    return None


def _print_unit(service: WorkerService) -> None:
    typer.echo(unit_of(service), nl=False)
    names = ", ".join(service.variables) or "no setting"
    typer.echo(f"note: {service.environment_file} (mode 0600) has from this environment: {names}", err=True)
    typer.echo("hint: run this again when one changes; `loginctl enable-linger` keeps it after you log out", err=True)
