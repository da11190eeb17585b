"""The simulator as a user starts it: `stationmaster simulator`, in its own process and home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from stationmaster.control.worker.background import running_worker
from stationmaster.model import Job
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.commands.command_line import answer_of, command_server, stationmaster
from tests.support.killing import kill
from tests.support.vast.simulated_vast import Customer
from tests.support.waiting import until

ACCOUNT_KEY = "account-key-that-stays-at-home-0123456789"
T = TypeVar("T")


class Service:
    """A running simulator, and a person's environment on the same home."""

    def __init__(self, *, home: Path, url: str, environ: dict[str, str]) -> None:
        self.home = home
        self.url = url
        self.environ = environ

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
        if "_looker" in self.__dict__:
            self._looker.close()

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return stationmaster(*words, environ={**self.environ, **environ})

    def answer(self, *words: str) -> Any:
        return answer_of(*words, environ=self.environ)

    def customer(self, key: str = ACCOUNT_KEY) -> Customer:
        return Customer(self.url, key)

    @cached_property
    def store(self) -> Store:
        """The home's store, open as long as the service is: to open it for every look would cost more than the look."""
        return Store(Database(f"sqlite:///{self.home / 'stationmaster.db'}"))

    def job(self, job_id: str) -> Job:
        return self.store.jobs.get(job_id)

    @cached_property
    def _looker(self) -> Customer:
        return self.customer()

    def alive(self) -> list[dict[str, Any]]:
        made = self._looker.http.get("/simulator/state").json()["instances"]
        return [machine for machine in made if machine["exists"]]

    def until(self, condition: Callable[[], T | None], what: str) -> T:
        return until(condition, what, story=lambda: (self.home / "worker.log").read_text()[-3000:])


@contextmanager
def simulator_service(folder: Path, *options: str, **environ: str) -> Iterator[Service]:
    """Afterwards neither the simulator nor a background worker of its home is left."""
    home = folder / "home"
    person = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "STATIONMASTER_HOME": str(home),
        "STATIONMASTER_PROVIDER": "simulator",
        "STATIONMASTER_WORKER__LINGER": "0",
        "STATIONMASTER_MONITORING__POLL_INTERVAL": "1",
        "STATIONMASTER_MONITORING__WATCH_INTERVAL": "0.5",
        **environ,
    }
    command = [command_server().own_command, "simulator", "--port", "0", "--api-key", ACCOUNT_KEY]
    process = subprocess.Popen(
        [*command, "--rate-limits", "0", "--speed", "10", *options],
        env=person,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "answers at" in said, said
        address = json.loads((home / "simulator" / "address.json").read_text())
        with closing(Service(home=home, url=address["url"], environ=person)) as service:
            yield service
    finally:
        if worker := running_worker(home):
            kill(worker.pid, signal.SIGTERM)
        process.terminate()
        process.communicate()
