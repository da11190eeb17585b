"""The HTTP service on a port of its own, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from stationmaster.api.app import Service, build_app


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """The service's address, while it answers."""
    config = uvicorn.Config(build_app(service), port=0, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    with config.bind_socket() as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
