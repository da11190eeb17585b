"""`stationmaster serve` as a process on a home with a simulated Vast.ai; it can be killed and started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import yaml
from playwright.sync_api import Browser

from tests.support.browser.visits import Visits
from tests.support.commands.client import ForkedCommand
from tests.support.commands.command_line import command_server
from tests.support.servers.ports import own_port
from tests.support.vast.simulator_service import Service, simulator_service

_PATIENCE_SECONDS = 60.0


class ServedStation:
    """`url` answers from `begin` to `end`; the worker, the jobs and the machines outlive it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._port = own_port()
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

    def train(self, pictures: Path, name: str, parameters: dict[str, object], **about: object) -> None:
        """Begin a training in the terminal; its name is its id. `about` is the rest of its job file."""
        file = self.service.home.parent / f"{name}.yaml"
        job = {"recipe": "tiny-lora@1", "dataset": str(pictures), "name": name, "parameters": parameters, **about}
        file.write_text(yaml.safe_dump(job))
        done = self.service.run("train", str(file), "--id", name, "--yes")
        assert done.returncode == 0, done.stderr

    def machines_of(self, job_id: str) -> list[str]:
        """The labels of the machines that this training has now."""
        return [machine["label"] for machine in self.service.alive() if f"-{job_id}-" in machine["label"]]

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


@contextmanager
def signed_in(browser: Browser, station: ServedStation) -> Iterator[Visits]:
    """Its administrator, `me`, in this browser."""
    with closing(Visits(browser, station.url, {"me": station.token})) as visits:
        yield visits
