"""`stationmaster up` as a process, on a home with a simulated Vast.ai; it can be ended and begun again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.commands.command_line import command_server
from tests.support.vast.simulator_service import Service, simulator_service

_PATIENCE_SECONDS = 60


class ServedStation:
    """`url` answers from `begin` to `end`; the jobs and the machines outlive it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        command = [command_server().own_command, "up", "--port", str(self._port)]
        self._process = subprocess.Popen(
            command,
            env=self.service.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert "answers at" in said, said

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            os.kill(self._process.pid, how)
            self._process.communicate(timeout=_PATIENCE_SECONDS)
            self._process = None

    @property
    def token(self) -> str:
        return (self.service.home / "serve.token").read_text().strip()


@contextmanager
def served_station(folder: Path, **environ: str) -> Iterator[ServedStation]:
    with simulator_service(folder, **environ) as service:
        station = ServedStation(service)
        station.begin()
        try:
            yield station
        finally:
            station.end()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
