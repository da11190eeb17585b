"""`worker`, `up`, `sweeper`, `serve`: processes that run in this terminal until they are stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import options_of, with_hint
from stationmaster.cli.logging import service_logging
from stationmaster.errors import ConfigInvalid
from stationmaster.station.local.services import LocalService, settings_to_serve


def worker(
    context: typer.Context,
    background: Annotated[
        bool, typer.Option("--background", help="Exit when no work is left; `train` starts workers this way.")
    ] = False,
) -> None:
    """Run a worker in this terminal.

    On TERM or Ctrl-C it hands its jobs back at once; trainings continue.

    Examples:

      stationmaster worker

      STATIONMASTER_DATABASE_URL=postgresql://station@db/station stationmaster worker --help
    """
    _work(_service(context), background=background)


def up(context: typer.Context) -> None:
    """Run the worker and its sweeps in this terminal until Ctrl-C.

    Examples:

      stationmaster up

      nohup stationmaster up >up.log 2>&1 &
    """
    _work(_service(context), background=False)


def sweeper(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Sweep once, then exit.")] = False,
) -> None:
    """Destroy machines that no job needs, at an interval.

    Needs no worker.

    Examples:

      stationmaster sweeper

      stationmaster sweeper --once
    """
    _service(context).sweep(once=once)


def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.", show_default=False)
    ] = None,
) -> None:
    """Serve HTTP: health checks, and uploads from machines.

    Machines can upload their models if serve.public_url is set.

    Examples:

      stationmaster serve

      STATIONMASTER_SERVE__PUBLIC_URL=https://station.example.org stationmaster serve --port 8080
    """
    options = options_of(context)
    settings = settings_to_serve(options.environ, home=options.home, log_level=options.log_level, host=host, port=port)
    service_logging(settings.log_level)
    try:
        from stationmaster.api.server import serve as run  # FastAPI, which is installed only where it is wanted
    except ImportError:
        raise ConfigInvalid(
            "`serve` needs FastAPI, which is not installed", hint="pip install 'stationmaster[serve]'"
        ) from None
    run(settings, options.environ, ready=lambda url: typer.echo(f"stationmaster answers at {url}"))


def _service(context: typer.Context) -> LocalService:
    options = options_of(context)
    service = LocalService(options.environ, home=options.home, log_level=options.log_level)
    service_logging(service.log_level)
    return service


def _work(service: LocalService, *, background: bool) -> None:
    with with_hint("choose a home that you may write to: --home", unusable=ConfigInvalid):
        is_served = service.work(background=background)
    if not is_served:
        typer.echo(f"a worker of {service.home} is already running")
