"""How uvicorn runs the service: the same in production and in tests."""

from __future__ import annotations

import socket
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from stationmaster.api.protocol import ConnectionLimits, guarded_by

_CLOSING_SECONDS = 5


def uvicorn_config(
    app: FastAPI,
    *,
    limits: ConnectionLimits | None = None,
    proxies: tuple[str, ...] = (),
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=guarded_by(limits or ConnectionLimits()),
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
    """Ends live streams as soon as it is asked to stop; uvicorn alone would wait for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if isinstance(self.config.app, FastAPI) and self.config.app.state.live is not None:
            self.config.app.state.live.close()
        await super().shutdown(sockets)
