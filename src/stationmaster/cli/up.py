"""`stationmaster up`: everything that one person needs, in one process."""

from __future__ import annotations

import typer

from stationmaster.cli.context import options_of, with_hint
from stationmaster.errors import ConfigInvalid


def up(context: typer.Context) -> None:
    """Run the worker with its sweeps in this terminal until Ctrl-C.

    Examples:

      stationmaster up

      nohup stationmaster up >up.log 2>&1 &
    """
    from stationmaster.cli.logging import service_logging
    from stationmaster.control.service import serve_worker

    options = options_of(context)
    source = options.settings_source()
    settings = source.settings
    service_logging(settings.log_level)
    with with_hint("choose a home that you may write to: --home", unusable=ConfigInvalid):
        is_served = serve_worker(source, background=False)
    if not is_served:
        typer.echo(f"a worker of {settings.home} is running already")
