"""`stationmaster serve`: the HTTP service."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import options_of


def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Where to listen.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes a free one.", show_default=False)] = None,
) -> None:
    """Answer over HTTP: whether all is well, and, where serve.public_url is set, machines that upload their models.

    Examples:

      stationmaster serve

      STATIONMASTER_SERVE__PUBLIC_URL=https://station.example.org stationmaster serve --port 8080
    """
    from stationmaster.cli.logging import service_logging
    from stationmaster.config import load_settings
    from stationmaster.errors import ConfigInvalid

    options = options_of(context)
    given = {"home": options.home, "log_level": options.log_level, "serve.host": host, "serve.port": port}
    settings = load_settings(options.environ, overrides=given)
    service_logging(settings.log_level)
    try:
        from stationmaster.api.server import serve as run
    except ImportError:
        raise ConfigInvalid(
            "`serve` needs FastAPI, which is not installed", hint="pip install 'stationmaster[serve]'"
        ) from None
    run(settings, ready=lambda url: typer.echo(f"stationmaster answers at {url}"))
