"""`stationmaster worker`: takes jobs further until told to leave."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import options_of, with_hint
from stationmaster.errors import ConfigInvalid


def worker(
    context: typer.Context,
    background: Annotated[
        bool, typer.Option("--background", help="Leave when nothing is left to do; started so by `train`.")
    ] = False,
) -> None:
    """Run a worker in this terminal. TERM or Ctrl-C hands its jobs back at once; trainings do not notice.

    Examples:

      stationmaster worker

      STATIONMASTER_DATABASE_URL=postgresql://station@db/station stationmaster worker --help
    """
    from stationmaster.cli.logging import service_logging
    from stationmaster.control.service import serve_worker

    options = options_of(context)
    source = options.settings_source()
    settings = source.settings
    service_logging(settings.log_level)
    with with_hint("choose a home that you may write to: --home", unusable=ConfigInvalid):
        is_served = serve_worker(source, background=background)
    if not is_served:
        typer.echo(f"a worker of {settings.home} is running already")
