"""How many moves of the state machine one worker makes per second, on SQLite and on PostgreSQL.

Jobs go the whole way from QUEUED to ENDED (seven moves, about twenty writes) on a fake provider and fake machines. The
store, the packing of logs, the verified transfers to and from home are real; networks and trainings are not there.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import structlog

from _jobs import RECIPE, job_spec, small_dataset
from _postgres import postgresql_url
from _report import report
from stationmaster.control.policy import Policy
from stationmaster.control.worker import Tempo, Worker
from stationmaster.control.world import World
from stationmaster.model import Access, LocalAccess, Outcome
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.registry import find
from stationmaster.remote.base import Remote
from stationmaster.remote.fake import FakeRemote
from stationmaster.remote.fake_trackside import FakeTrackside, Script
from stationmaster.settings import MonitoringSettings
from stationmaster.store.engine import Database
from stationmaster.store.store import Store

BUDGET_PER_SECOND = 300.0
JOBS = 200
_MOST_SECONDS = 300.0
_POLICY = Policy(
    monitoring=MonitoringSettings(poll_interval=0, watch_interval=0),
    provider_look_seconds=0.0,
    retry_seconds=(0.0,),
    attempt_seconds=(0.0,),
)
_SCRIPT = Script(training_steps=2, seconds_per_step=1.0, checkpoint_every=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    seconds: float
    cpu_seconds: float
    moves: int


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as folder:
        _tell("SQLite", _measure(Path(folder), f"sqlite:///{folder}/store.db"))
    with tempfile.TemporaryDirectory() as folder, postgresql_url() as url:
        _tell("PostgreSQL", _measure(Path(folder), url))
    return 0


def _tell(engine: str, measured: Measured) -> None:
    """By the clock, and by processor time: on a computer that does other things as well only the latter says much."""
    for unit, seconds in (("per s", measured.seconds), ("per CPU s", measured.cpu_seconds)):
        report(f"moves of the state machine, {engine}", measured.moves / seconds, unit, at_least=BUDGET_PER_SECOND)


def _measure(folder: Path, url: str) -> Measured:
    store = Store(Database(url))
    try:
        dataset = small_dataset(folder)
        for number in range(JOBS):
            store.jobs.submit(job_spec(number, dataset, steps=_SCRIPT.training_steps))
        return asyncio.run(_work(store, folder))
    finally:
        store.close()


async def _work(store: Store, folder: Path) -> Measured:
    recipe = find(RECIPE)
    pyz = folder / "trackside.pyz"
    pyz.write_bytes(b"trackside")
    with ThreadPoolExecutor(4) as threads:
        world = World(
            store=store,
            providers={"fake": FakeProvider()},
            connect=_Machines(),
            find_recipe=lambda _reference: recipe,
            secrets=lambda _name: None,
            home=folder / "home",
            trackside=pyz,
            policy=_POLICY,
            threads=threads,
        )
        worker = Worker(world, Tempo(slots=64))
        began, used = time.perf_counter(), time.process_time()

        async def all_ended() -> bool:
            return await world.ask_store(store.jobs.count_needing_a_worker) == 0

        async with asyncio.timeout(_MOST_SECONDS):
            await worker.run(until=all_ended)
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - used
    return Measured(seconds=seconds, cpu_seconds=cpu_seconds, moves=_moves(store))


class _Machines:
    """One machine in memory for each that the provider gave out."""

    def __init__(self) -> None:
        self._known: dict[str, FakeRemote] = {}

    def __call__(self, access: Access) -> Remote:
        assert isinstance(access, LocalAccess)
        if access.root not in self._known:
            self._known[access.root] = FakeRemote()
            FakeTrackside(self._known[access.root], script=_SCRIPT)
        return self._known[access.root]


def _moves(store: Store) -> int:
    """Changes of state as the events tell them; every job must have gone all the way."""
    moves = 0
    for job in store.jobs.listed(with_ended=True, limit=JOBS + 1):
        if job.outcome is not Outcome.COMPLETED:
            raise SystemExit(f"{job.id} is {job.state} {job.outcome}: the measure is worthless")
        moves += sum(event.kind == "state" for event in store.events.of_job(job.id))
    return moves


if __name__ == "__main__":
    sys.exit(main())
