"""The HTTP service on a port of its own, in a thread, run as `stationmaster serve` runs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from stationmaster.api.app import Service, build_app
from stationmaster.api.connections import ConnectionLimits
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.listening import listen
from stationmaster.api.uvicorn_setup import StoppableServer, uvicorn_config


@contextmanager
def serving(
    service: Service, *, gate: GatePolicy | None = None, limits: ConnectionLimits | None = None
) -> Iterator[str]:
    """The service's address, while it answers. Without a `gate` there is no limit on the number of requests."""
    app = build_app(service if gate is None else replace(service, gate=gate))
    server = StoppableServer(uvicorn_config(app, limits=limits))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
