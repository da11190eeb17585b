"""`stationmaster up`: everything that one person needs, in one process."""

from __future__ import annotations

import typer

from stationmaster.cli.context import options_of


def up(context: typer.Context) -> None:
    """Run the worker with its sweeps in this terminal until Ctrl-C.

    Examples:

      stationmaster up

      nohup stationmaster up >up.log 2>&1 &
    """
    from stationmaster.cli.logging import service_logging
    from stationmaster.control.service import serve_worker

    options = options_of(context)
    settings = options.settings()
    service_logging(settings.log_level)
    if not serve_worker(settings, options.environ, background=False):
        typer.echo(f"a worker of {settings.home} is running already")
