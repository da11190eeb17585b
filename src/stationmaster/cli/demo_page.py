"""The page beside the demo: open while it trains, and at a terminal afterwards until Ctrl-C."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import typer

from stationmaster.cli.browser import open_in_browser
from stationmaster.cli.context import Options, options_of
from stationmaster.station.local.services import LocalService
from stationmaster.station.local.station import LocalStation

if TYPE_CHECKING:
    from stationmaster.api.server import HttpService

_LOOK_SECONDS = 2.0


def is_attended() -> bool:
    """Whether a person is there to look at the page, and to end the command."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def page_beside(context: typer.Context) -> Iterator[HttpService | None]:
    """Serve the page as long as the context is open; None, with a line that says why, where it cannot be."""
    try:
        from stationmaster.api.server import HttpService  # FastAPI, which is installed only where it is wanted
    except ImportError:
        typer.echo("no page: FastAPI is not installed; pip install 'stationmaster[serve]'", err=True)
        yield None
        return
    with HttpService(_service(options_of(context)).settings_source()) as answering:
        if not answering.has_page:
            typer.echo("no page: this installation was built without it", err=True)
            yield None
            return
        with ends_in_order(), answering.beside():
            yield answering


def show_until_interrupted(page: HttpService, station: LocalStation, path: str, options: Options) -> None:
    """Open the page at `path` and keep it until Ctrl-C. Trainings that are started on it get a worker."""
    link = page.link_to(path)
    typer.echo(f"\nOn the page, with its charts and samples (the link signs you in once, within 10 minutes):\n  {link}")
    if not page.is_watched:
        open_in_browser(link, options.environ)
    typer.echo("The page stays until you press Ctrl-C.")
    try:
        while True:
            time.sleep(_LOOK_SECONDS)
            station.processes.wake_worker(options.for_worker())
    except KeyboardInterrupt:
        typer.echo("\nThe page is closed; `stationmaster up --open` opens it again.")


def _service(options: Options) -> LocalService:
    """For this computer only: on the port of the settings, or on any if that is in use."""
    given = partial(LocalService, options.environ, home=options.home, log_level=options.log_level, host="127.0.0.1")
    service = given()
    return service if _is_free(service.port) else given(port=0)


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


@contextmanager
def ends_in_order() -> Iterator[None]:
    """Let TERM, and the end of the terminal, unwind this process: what it has started must not be left behind.

    What the process was told to ignore, as by `nohup`, stays ignored.
    """

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    heeded = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, leave) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
