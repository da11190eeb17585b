"""`worker`, `up`, `sweeper`, `serve`: processes that run in this terminal until they are stopped."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stationmaster.cli.browser import open_in_browser
from stationmaster.cli.context import options_of, with_hint
from stationmaster.cli.logging import service_logging
from stationmaster.errors import ConfigInvalid
from stationmaster.event_log import get_logger
from stationmaster.station.local.services import LocalService

if TYPE_CHECKING:
    from stationmaster.api.server import HttpService

log = get_logger("stationmaster.services")

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.", show_default=False)]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 picks a free one.", show_default=False),
]

Open = Annotated[bool, typer.Option("--open", help="Open the page in your browser, signed in.")]


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


def up(context: typer.Context, host: Host = None, port: Port = None, opens: Open = False) -> None:
    """Run worker, sweeps and the page until Ctrl-C.

    Open the printed link to see the page, signed in.

    Examples:

      stationmaster up --open

      nohup stationmaster up --port 8081 >up.log 2>&1 &
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # until the worker hears them itself
        signal.signal(number, _leave)
    service = _service(context, host=host, port=port)
    try:
        from stationmaster.api.server import HttpService  # FastAPI, which is installed only where it is wanted
    except ImportError:
        typer.echo("no HTTP service: FastAPI is not installed; pip install 'stationmaster[serve]'", err=True)
        _work(service, background=False)
        return
    with HttpService(service.settings_source()) as answering:
        _announce(answering, context, opens=opens)
        with answering.beside():
            _work_in_turn(service)


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


def serve(context: typer.Context, host: Host = None, port: Port = None, opens: Open = False) -> None:
    """Serve the page, the API and uploads from machines.

    Open the printed link to see the page, signed in. Machines can upload their models if serve.public_url is set.

    Examples:

      stationmaster serve --open

      STATIONMASTER_SERVE__PUBLIC_URL=https://station.example.org stationmaster serve --port 8080
    """
    service = _service(context, host=host, port=port)
    try:
        from stationmaster.api.server import serve as run  # FastAPI, which is installed only where it is wanted
    except ImportError:
        raise ConfigInvalid(
            "`serve` needs FastAPI, which is not installed", hint="pip install 'stationmaster[serve]'"
        ) from None
    run(service.settings_source(), ready=lambda answering: _announce(answering, context, opens=opens))


def _announce(answering: HttpService, context: typer.Context, *, opens: bool) -> None:
    """Addresses for people, on standard output only: the link is a secret and must not be in a log."""
    typer.echo(f"stationmaster answers at {answering.url}")
    link = answering.sign_in_link()
    if link is not None:
        typer.echo(f"sign a browser in, once within 10 minutes: {link}")
        typer.echo(f"token for programs on this computer: {answering.token_file}")
    sys.stdout.flush()
    if not answering.has_page:
        typer.echo("there is no page, only the API: this installation was built without it", err=True)
    elif opens:
        open_in_browser(link or answering.url, options_of(context).environ)


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)


def _work_in_turn(service: LocalService) -> None:
    """Work until stopped; where this home has a worker already, from when that one leaves."""
    is_over = threading.Event()
    while not _work(service, background=False):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: is_over.set())
        if not service.wait_until_free(is_over):
            return


def _service(context: typer.Context, *, host: str | None = None, port: int | None = None) -> LocalService:
    options = options_of(context)
    service = LocalService(options.environ, home=options.home, log_level=options.log_level, host=host, port=port)
    service_logging(service.log_level)
    if (missing := service.missing_setting()) is not None:
        log.warning("settings.incomplete", provider=service.provider, problem=str(missing), hint=missing.hint)
    return service


def _work(service: LocalService, *, background: bool) -> bool:
    """Whether there was something to run: a home has one worker."""
    with with_hint("choose a home that you may write to: --home", unusable=ConfigInvalid):
        is_served = service.work(background=background)
    if not is_served:
        typer.echo(f"a worker of {service.home} is already running")
    return is_served
