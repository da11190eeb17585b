"""The HTTP service as a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing

from stationmaster.api.app import Service, build_app
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.listening import address_of, listen, possible_connections
from stationmaster.api.protocol import ConnectionLimits
from stationmaster.api.uvicorn_setup import StoppableServer, uvicorn_config
from stationmaster.control.destinations.job_bucket import open_job_bucket
from stationmaster.event_log import get_logger
from stationmaster.settings import Settings
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.news import LocalNews
from stationmaster.station.local.station import LocalStation
from stationmaster.station.owned.allowances import Allowances

log = get_logger("stationmaster.serve")


def serve(settings: Settings, environ: Mapping[str, str], *, ready: Callable[[str], None]) -> None:
    """Answer requests until TERM or Ctrl-C; `ready` gets the address. Raises ConfigInvalid for a port in use."""
    with ExitStack() as opened:
        listening = opened.enter_context(closing(listen(settings.serve.host, settings.serve.port)))
        station = opened.enter_context(closing(LocalStation(settings, environ)))
        store = station.store
        job_bucket = open_job_bucket(settings, store) if settings.serve.public_url is not None else None
        if job_bucket is not None:
            opened.callback(job_bucket.close)
        elif settings.serve.public_url is not None:
            why = "serve.public_url is set, but no bucket: there is nowhere to upload to"
            log.warning("uploads.off", why=why, hint="set bucket.name, see docs/how-to/object-store.md")
        news = opened.enter_context(closing(LocalNews(store)))
        service = Service(
            station=station,
            doorkeeper=LocalDoorkeeper(store),
            allowances=Allowances.of(settings),
            gate=GatePolicy.of(settings.serve),
            news=news,
            tickets=None if job_bucket is None else job_bucket.tickets,
        )
        config = uvicorn_config(
            build_app(service),
            limits=ConnectionLimits(most_connections=possible_connections(ConnectionLimits().most_connections)),
            proxies=settings.serve.proxies,
            tls_cert=settings.serve.tls_cert,
            tls_key=settings.serve.tls_key,
        )
        ready(address_of(listening, is_https=settings.serve.tls_cert is not None))
        StoppableServer(config).run(sockets=[listening])
