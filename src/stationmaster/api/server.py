"""The HTTP service as a process, or as a thread beside a worker."""

from __future__ import annotations

import os
import signal
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Self
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI

from stationmaster.api.app import Service, build_app
from stationmaster.api.connections import ConnectionLimits
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.listening import address_of, listen, possible_connections
from stationmaster.api.live.hub import LiveLimits
from stationmaster.api.reloading import follow_settings
from stationmaster.api.uvicorn_setup import StoppableServer, uvicorn_config
from stationmaster.control.destinations.job_bucket import open_job_bucket
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.errors import ConfigInvalid, StationmasterError
from stationmaster.event_log import get_logger
from stationmaster.model import SINGLE_USER
from stationmaster.settings.addresses import is_loopback_host
from stationmaster.settings.serving import ServeSettings
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.news import LocalNews
from stationmaster.station.local.station import LocalStation
from stationmaster.station.local.token_file import ensure_token_file
from stationmaster.station.owned.allowances import Allowances
from stationmaster.station.tokens import SIGN_IN_PATH

log = get_logger("stationmaster.serve")


class HttpService:
    """Everything that answers requests, opened and ready; as a context it is closed at the end.

    Raises ConfigInvalid for a home that cannot be written, a port in use and a certificate that cannot be used.
    """

    def __init__(self, source: SettingsSource) -> None:
        settings = source.settings
        with ExitStack() as opened:
            station = opened.enter_context(closing(LocalStation(settings, source.environ)))
            store = station.store
            listening = opened.enter_context(closing(listen(settings.serve.host, settings.serve.port)))
            job_bucket = open_job_bucket(settings, store) if settings.serve.public_url is not None else None
            if job_bucket is not None:
                opened.callback(job_bucket.close)
            elif settings.serve.public_url is not None:
                why = "serve.public_url is set, but no bucket: there is nowhere to upload to"
                log.warning("uploads.off", why=why, hint="set bucket.name, see docs/how-to/object-store.md")
            doorkeeper = LocalDoorkeeper(store)
            limits = _connection_limits(settings.serve)
            news = opened.enter_context(closing(LocalNews(store)))
            app = build_app(
                Service(
                    station=station,
                    doorkeeper=doorkeeper,
                    allowances=Allowances.of(settings),
                    gate=GatePolicy.of(settings.serve),
                    news=news,
                    live_limits=LiveLimits(
                        streams=min(settings.serve.streams, limits.most_connections // 2),
                        streams_per_user=settings.serve.streams_per_user,
                    ),
                    tickets=None if job_bucket is None else job_bucket.tickets,
                )
            )
            self._server = StoppableServer(_config(app, settings.serve, limits))
            self._app = app
            self._socket = listening
            self.url = address_of(listening, is_https=settings.serve.tls_cert is not None)
            self.token_file = None
            if settings.serve.auth:
                self.token_file = ensure_token_file(settings.home, station.tokens, doorkeeper)
            self.station = station
            opened.enter_context(follow_settings(source, app, station))
            self._opened = opened.pop_all()
        _warn_without_tls(settings.serve)

    def sign_in_link(self, then: str | None = None) -> str | None:
        """A link that signs a browser in once and leads to the page's path `then`; None where no sign-in is needed."""
        if self.token_file is None:
            return None
        query = "" if then is None else f"?next={quote(then, safe='/')}"
        return f"{self.url}{SIGN_IN_PATH}{query}#{self.station.tokens.create_link(SINGLE_USER).code}"

    def link_to(self, path: str) -> str:
        """A link to a path of the page that works in any browser of this computer, once where it signs in."""
        return self.sign_in_link(path) or f"{self.url}{path}"

    @property
    def has_page(self) -> bool:
        """Whether this installation was built with the page."""
        return self._app.state.page.start() is not None

    @property
    def is_watched(self) -> bool:
        """Whether a browser has the page open: it listens to what happens."""
        live = self._app.state.live
        return live is not None and live.is_listened_to

    def run(self) -> None:
        """Answer requests until TERM or Ctrl-C."""
        with _deaf_to_signals():  # uvicorn hears them, and sends them once more when it has closed
            self._server.run(sockets=[self._socket])

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Answer requests in a thread, as long as the context is open. If the thread fails, this process gets TERM.

        Raises ServiceCrashed at the end if it failed.
        """
        crashed: list[BaseException] = []

        def run() -> None:
            try:
                self._server.run(sockets=[self._socket])
                if not self._server.should_exit:
                    raise RuntimeError("it ended without being asked")
            except BaseException as problem:
                crashed.append(problem)
                log.error("serve.crashed", problem=f"{type(problem).__name__}: {problem}", exc_info=problem)
                os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=run, name="serve")
        thread.start()
        try:
            yield
        finally:
            self._server.should_exit = True
            thread.join()
        if crashed:
            raise ServiceCrashed(f"the HTTP service failed: {crashed[0]}", hint="the log above has the details")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self._opened.close()


class ServiceCrashed(StationmasterError):
    """The HTTP service failed."""


def serve(source: SettingsSource, *, ready: Callable[[HttpService], None]) -> None:
    """Answer requests until TERM or Ctrl-C; `ready` gets the service before. Raises ConfigInvalid."""
    with HttpService(source) as service:
        ready(service)
        service.run()


def _connection_limits(settings: ServeSettings) -> ConnectionLimits:
    return ConnectionLimits(
        head_seconds=settings.head_timeout,
        idle_seconds=settings.idle_timeout,
        unread_seconds=settings.unread_timeout,
        most_connections=possible_connections(settings.connections),
        most_per_address=settings.connections_per_address,
        proxies=settings.proxies,
    )


def _config(app: FastAPI, settings: ServeSettings, limits: ConnectionLimits) -> uvicorn.Config:
    config = uvicorn_config(
        app,
        limits=limits,
        proxies=settings.proxies,
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as problem:
        raise ConfigInvalid(
            f"the certificate cannot be used: {problem}", hint="check serve.tls_cert and serve.tls_key"
        ) from None
    return config


def _warn_without_tls(settings: ServeSettings) -> None:
    if not is_loopback_host(settings.host) and not settings.is_https:
        log.warning(
            "serve.no_tls",
            why=f"{settings.host} can be reached from elsewhere, and tokens travel unencrypted",
            hint="set serve.tls_cert and serve.tls_key; or put a proxy with TLS in front and set serve.public_url",
        )


@contextmanager
def _deaf_to_signals() -> Iterator[None]:
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
