"""`stationmaster serve` as a process on a home with a simulated Vast.ai; it can be killed and started again."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.support.commands.client import ForkedCommand
from tests.support.commands.command_line import command_server
from tests.support.vast.simulator_service import Service, simulator_service

_PATIENCE_SECONDS = 60.0


class ServedStation:
    """`url` answers from `begin` to `end`; the worker, the jobs and the machines outlive it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._serving: ForkedCommand | None = None
        self._said: IO[str] | None = None  # open as long as the process may write to it

    def begin(self) -> None:
        words = ["serve", "--port", str(self._port)]
        out, written = os.pipe()
        self._said = os.fdopen(out)
        with Path(os.devnull).open("r+") as nothing:
            self._serving = ForkedCommand(
                str(command_server().address),
                words,
                environ=self.service.environ,
                cwd=str(Path.cwd()),
                streams=(nothing.fileno(), written, nothing.fileno()),
            )
        os.close(written)
        line = self._said.readline()
        assert "answers at" in line, line

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process itself: nothing of it answers afterwards."""
        if self._serving is None or self._said is None:
            return
        with self._serving as serving, self._said:
            os.kill(serving.pid, how)
            serving.wait(_PATIENCE_SECONDS)
        self._serving = self._said = None

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
