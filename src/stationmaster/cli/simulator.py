"""`stationmaster simulator`: a simulated Vast.ai on this computer, with real machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import finite, given_path, options_of, with_hint
from stationmaster.cli.logging import service_logging
from stationmaster.errors import ConfigInvalid
from stationmaster.simulator.cloud import Pace
from stationmaster.simulator.faults import read_faults
from stationmaster.simulator.main import run
from stationmaster.station.local.station import open_station


def simulator(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8765,
    api_key: Annotated[str, typer.Option(help="API key of its only account.")] = "simulated-key",
    seed: Annotated[int, typer.Option(help="Seed of the simulated offers.")] = 1,
    backend: Annotated[
        str, typer.Option(help="How to isolate hosts: process (anywhere) or namespaces (Linux, root).")
    ] = "process",
    faults: Annotated[
        Path | None, typer.Option(parser=given_path, help="Script of faults to simulate.", show_default=False)
    ] = None,
    credit: Annotated[
        float, typer.Option(min=0, max=1_000_000, help="Credit of the account, in dollars.", callback=finite)
    ] = 100.0,
    rate_limits: Annotated[
        float,
        typer.Option(min=0, max=1000, help="Scale of the real service's rate limits; 0 for none.", callback=finite),
    ] = 1.0,
    speed: Annotated[
        float,
        typer.Option(
            min=1, max=1_000_000, help="How much faster than real time machines start and bills grow.", callback=finite
        ),
    ] = 1.0,
) -> None:
    """Simulate Vast.ai on this computer; needs no account.

    Serves the API of Vast.ai and starts throw-away hosts with SSH. While it runs, jobs use it with
    `--provider simulator`; point any other client at the address that it prints.

    Examples:

      stationmaster simulator --port 8765 --api-key test

      VAST_URL=http://127.0.0.1:8765 vastai --api-key test search offers
    """
    options = options_of(context)
    station = open_station(options.environ, home=options.home, log_level=options.log_level)
    service_logging(station.log_level)
    processes = station.processes
    with with_hint("choose a home that you may write to: --home", unusable=ConfigInvalid):
        folder = processes.make_simulator_folder()
    if faults is not None:
        _require_readable(faults)

    def ready(url: str) -> None:
        processes.announce_simulator(url, api_key=api_key, rate_limit_scale=rate_limits)
        typer.echo(f"the simulator answers at {url} (API key: {api_key})")

    try:
        run(
            port=port,
            api_key=api_key,
            home=folder,
            seed=seed,
            backend=backend,
            faults=faults,
            credit_usd=credit,
            clock_speed=speed,
            rate_limit_scale=rate_limits,
            pace=Pace(),
            path=options.machine_path(),
            ready=ready,
        )
    finally:
        processes.withdraw_simulator()


def _require_readable(faults: Path) -> None:
    """Raises ConfigInvalid, with a hint, for a script of faults that cannot be read."""
    hint = "write YAML or JSON, for example [{kind: …}]"
    with with_hint(hint, ConfigInvalid):
        read_faults(faults)
