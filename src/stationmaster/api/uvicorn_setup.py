"""How uvicorn runs the service: the same in production and in tests."""

from __future__ import annotations

import socket
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from stationmaster.api.connections import ConnectionLimits
from stationmaster.api.listening import BACKLOG, Listener
from stationmaster.api.protocol import GuardedProtocol, ServerFull, guarded_by, refusal_of

_CLOSING_SECONDS = 5


def uvicorn_config(
    app: FastAPI,
    *,
    limits: ConnectionLimits | None = None,
    proxies: tuple[str, ...] = (),
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
) -> uvicorn.Config:
    limits = limits or ConnectionLimits()
    return uvicorn.Config(
        app,
        loop="asyncio",  # another one would not accept connections by our listener, which limits them
        http=guarded_by(limits),
        backlog=BACKLOG,
        timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]  # any number will do
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # warnings are about malformed requests: any client could fill the log
        access_log=False,  # tickets are in the paths
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )


class StoppableServer(uvicorn.Server):
    """Accepts connections within their limits. Asked to stop, it ends live streams and half requests at once; uvicorn
    alone would wait for them."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        protocol = self.config.http_protocol_class
        for listening in sockets or ():
            if isinstance(listening, Listener) and issubclass(protocol, GuardedProtocol):
                listening.connections = protocol.open_connections
                listening.refusal = refusal_of(ServerFull()) if self.config.ssl is None else b""
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if isinstance(self.config.app, FastAPI) and self.config.app.state.live is not None:
            self.config.app.state.live.close()
        for each in list(self.server_state.connections):
            if isinstance(each, GuardedProtocol) and each.has_half_request:
                each.give_up()
        await super().shutdown(sockets)
