"""One installation in a folder: its station, and a worker on this computer that can be run as far as a test needs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from stationmaster.config import load_settings
from stationmaster.control.wiring.build import build_world
from stationmaster.control.worker.worker import Worker
from stationmaster.model import State
from stationmaster.providers.labelled_processes import processes_of
from stationmaster.station.base import Station
from stationmaster.station.datasets import DatasetReference
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import TrainRequest
from stationmaster.store.engine import Database
from stationmaster.store.ledger import Ledger
from stationmaster.store.store import Store
from tests.support.jobs.dataset_pictures import good_set
from tests.support.jobs.prepared_store import put_new_store
from tests.support.killing import kill
from tests.support.waiting import PATIENCE_SECONDS, Pauses

_LOOK_SECONDS = 0.1  # a look takes as long as a step of the worker
_QUICK = {"seconds_per_step": 0, "save_every": 10, "sample_every": 20}


def write_pictures(folder: Path, count: int = 6) -> Path:
    """A small captioned set, good enough to be trained on."""
    return good_set(folder, images=count)


class LocalWorld:
    """Use as a context manager; afterwards no process of any of its machines is left."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.patience_seconds = PATIENCE_SECONDS
        self.may_trip = False  # whether the test is about an internal error
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(folder / "home"),
            "STATIONMASTER_MONITORING__POLL_INTERVAL": "0.4",
            "STATIONMASTER_MONITORING__WATCH_INTERVAL": "0.4",
            **environ,
        }
        self.settings = load_settings(self.environ, folder=folder)

    def __enter__(self) -> Self:
        if self.settings.uses_sqlite and not (path := self.settings.home / "stationmaster.db").exists():
            put_new_store(path)
        self.local = LocalStation(self.settings, self.environ)
        self.station: Station = self.local
        return self

    def __exit__(self, *_: object) -> None:
        for rental in self.local.store.rentals.not_gone():
            for pid in processes_of(rental.label):
                kill(pid)
        self.local.close()

    def actor(self, given: str) -> str:
        """Who changes credits, where a request says that `given` does."""
        return given

    @property
    def store(self) -> Store:
        return self.local.store

    @property
    def ledger(self) -> Ledger:
        return self.local.store.ledger

    def request(self, dataset: DatasetReference, **fields: Any) -> TrainRequest:
        """A short real training."""
        parameters = {"steps": 20, **_QUICK, **fields.pop("parameters", {})}
        return TrainRequest(recipe="tiny-lora@1", dataset=dataset, parameters=parameters, **fields)

    def stop_training(self, job_id: str, script: str = "train.py") -> None:
        """Its trainer makes no more steps: else it might end on a slow computer before a test has seen it train."""
        (rental,) = [each for each in self.store.rentals.of_job(job_id) if each.gone_at is None]
        for pid in processes_of(rental.label):
            with suppress(OSError):  # ended meanwhile
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                if any(word.endswith(f"/{script}") for word in words[:2]):
                    os.kill(pid, signal.SIGSTOP)

    def work_until(self, condition: Callable[[], bool], *, what: str, later: float = 0.0) -> None:
        """Run a worker until the condition holds, then ask it to leave. `later`: its clock is ahead."""
        with closing(Store(Database(self.settings.store_url, clock_offset=later))) as store:
            asyncio.run(self._work_until(condition, what, store))

    def work_until_ended(self, job_id: str, *, later: float = 0.0) -> None:
        ended = f"{job_id} has ended"
        self.work_until(lambda: self.store.jobs.get(job_id).state is State.ENDED, what=ended, later=later)

    async def _work_until(self, condition: Callable[[], bool], what: str, store: Store) -> None:
        world = build_world(self.settings, self.environ, store)
        world.policy = replace(world.policy, provider_look_seconds=0.1, room_look_seconds=0.3)
        worker = Worker(world)
        running = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(self.patience_seconds):
                pauses = Pauses()
                while True:
                    pauses.begin_look()
                    if await asyncio.to_thread(condition):
                        return
                    assert not running.done(), running
                    tripped = [each for each in self.local.store.alerts.open() if each.kind == "internal_error"]
                    assert self.may_trip or not tripped, tripped[0].message
                    await asyncio.sleep(max(_LOOK_SECONDS, pauses.next_seconds()))
        except TimeoutError:
            raise AssertionError(f"after {self.patience_seconds:g} s still not: {what}") from None
        finally:
            worker.leave()
            await running
            await world.close()
