"""`stationmaster doctor`: checks of this installation."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, require_this_computer, station_of

_UNIT = """[Unit]
Description=Stationmaster worker
After=network-online.target

[Service]
ExecStart={python} -m stationmaster --home {home} worker
Restart=always
RestartSec=5
UMask=0077

[Install]
WantedBy=default.target
"""


def doctor(
    context: typer.Context,
    service: Annotated[
        bool, typer.Option("--service", help="Print a systemd user unit that keeps a worker alive.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check settings, store, worker and tools.

    Exit code 1 if a check fails.

    Examples:

      stationmaster doctor

      stationmaster doctor --service > ~/.config/systemd/user/stationmaster.service
    """
    if service:
        require_this_computer(context, "doctor --service")
    with station_of(context, wake=False) as station:
        if service:
            values = station.checks.worker_service()
            typer.echo(_UNIT.format(python=values.python, home=values.home), nl=False)
            return
        results = station.checks.results()
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.checks import CheckDocument

        print_json([CheckDocument.of(result).model_dump(mode="json") for result in results])
    else:
        for result in results:
            typer.echo(f"{'ok ' if result.ok else 'BAD'}  {result.check:<10} {result.detail}")
            if result.hint:
                typer.echo(f"     hint: {result.hint}")
    if not all(result.ok for result in results):
        raise typer.Exit(1)
