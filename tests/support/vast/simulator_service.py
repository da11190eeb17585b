"""The simulator as a person starts it: `stationmaster simulator`, in a process and a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.control.background import running_worker
from stationmaster.model import Job
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.vast.simulated_vast import Customer

ACCOUNT_KEY = "account-key-that-stays-at-home-0123456789"
_PATIENCE_SECONDS = 150.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running simulator, and a person's environment on the same home."""

    home: Path
    url: str
    environ: dict[str, str]

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return stationmaster(*words, environ={**self.environ, **environ})

    def answer(self, *words: str) -> Any:
        return answer_of(*words, environ=self.environ)

    def customer(self, key: str = ACCOUNT_KEY) -> Customer:
        return Customer(self.url, key)

    def job(self, job_id: str) -> Job:
        """From the store: a command would cost a second."""
        store = Store(Database(f"sqlite:///{self.home / 'stationmaster.db'}"))
        try:
            return store.jobs.get(job_id)
        finally:
            store.close()

    def alive(self) -> list[dict[str, Any]]:
        customer = self.customer()
        try:
            made = customer.http.get("/simulator/state").json()["instances"]
        finally:
            customer.close()
        return [machine for machine in made if machine["exists"]]

    def until(self, condition: Any, what: str) -> Any:
        ends = time.monotonic() + _PATIENCE_SECONDS
        while not (found := condition()):
            assert time.monotonic() < ends, f"never came: {what}\n{(self.home / 'worker.log').read_text()[-3000:]}"
            time.sleep(0.05)
        return found


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
        "STATIONMASTER_MONITORING__POLL_INTERVAL": "0.5",
        "STATIONMASTER_MONITORING__WATCH_INTERVAL": "0.3",
        **environ,
    }
    command = [sys.executable, "-m", "stationmaster", "simulator", "--port", "0", "--api-key", ACCOUNT_KEY]
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
        yield Service(home=home, url=address["url"], environ=person)
    finally:
        if worker := running_worker(home):
            os.kill(worker.pid, signal.SIGTERM)
        process.terminate()
        process.communicate()
