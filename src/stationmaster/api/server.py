"""The HTTP service as a process."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing

import uvicorn

from stationmaster.api.app import Service, build_app
from stationmaster.control.destinations.job_bucket import open_job_bucket
from stationmaster.errors import ConfigInvalid
from stationmaster.event_log import get_logger
from stationmaster.settings import Settings
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.station import LocalStation
from stationmaster.station.owned.allowances import Allowances

log = get_logger("stationmaster.serve")

_CLOSING_SECONDS = 5


def serve(settings: Settings, environ: Mapping[str, str], *, ready: Callable[[str], None]) -> None:
    """Answer requests until TERM or Ctrl-C; `ready` gets the address. Raises ConfigInvalid for a port in use."""
    with ExitStack() as opened:
        listening = opened.enter_context(closing(_listen(settings.serve.host, settings.serve.port)))
        station = opened.enter_context(closing(LocalStation(settings, environ)))
        store = station.store
        job_bucket = open_job_bucket(settings, store) if settings.serve.public_url is not None else None
        if job_bucket is not None:
            opened.callback(job_bucket.close)
        elif settings.serve.public_url is not None:
            why = "serve.public_url is set, but no bucket: there is nowhere to upload to"
            log.warning("uploads.off", why=why, hint="set bucket.name, see docs/how-to/object-store.md")
        service = Service(
            station=station,
            doorkeeper=LocalDoorkeeper(store),
            allowances=Allowances.of(settings),
            tickets=None if job_bucket is None else job_bucket.tickets,
        )
        config = uvicorn.Config(
            build_app(service),
            lifespan="off",
            log_level="warning",
            access_log=False,  # tickets are in the paths
            timeout_graceful_shutdown=_CLOSING_SECONDS,
        )
        host, port = listening.getsockname()[:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
    except OSError as problem:
        raise ConfigInvalid(
            f"port {port} on {host} cannot be used: {problem.strerror}", hint="choose another one with --port"
        ) from None
