"""How many moves of the state machine one worker makes per second, on SQLite and on PostgreSQL.

Jobs move from QUEUED to ENDED (seven moves, about twenty writes) on a fake provider and fake machines. The store, the
packing of logs and the verified transfers are real; there are no networks and no trainings.

Two more figures do not depend on the computer: the store and a bare SQL loop repeat the same writes, and the store has
to reach half of the loop's speed; the whole worker, which also decides, talks to machines, moves files and analyses,
has a budget for each engine. A comparison with a loop that shares transactions as the worker does has none. Everything
is measured three times, and the fastest counts.

How many Python functions a move calls is the same within 2 %, however busy the computer is, so it tells whether a move
has become dearer. The other figures follow the computer, and so does the share of the bare loop: that loop is the C of
SQLite, and the worker is Python.

The worker's pace on one core is printed as well, without a budget: its threads hand work to each other, and what waking
another core costs depends on the virtual machine.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

import structlog

from _bare_loop import Batch, RecordingLeases, seconds_by_a_bare_loop, seconds_by_the_store, set_aside
from _jobs import RECIPE, job_spec, small_dataset
from _postgres import empty_database, postgresql_url
from _report import print_figure, report
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import World
from stationmaster.control.worker.worker import Worker
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
BUDGET_SHARE = 0.5  # of the pace of a bare SQL loop
BUDGET_WORKER_SHARE = {"SQLite": 0.10, "PostgreSQL": 0.6}  # the same; PostgreSQL's loop mostly waits for the server
BUDGET_CALLS = 2500.0  # for each move; Python 3.12 and later call no function for a comprehension
JOBS = 200
_MOST_SECONDS = 300.0
_TURNS = 3
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
    batches: tuple[Batch, ...] = field(repr=False)  # what was written, by transaction


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as folder:
        _compare("SQLite", Path(folder), lambda name: f"sqlite:///{folder}/{name}.db")
        report(f"{_name('SQLite')}: functions called", _calls_per_move(Path(folder)), "per move", at_most=BUDGET_CALLS)
    with tempfile.TemporaryDirectory() as folder, postgresql_url() as url:
        _compare("PostgreSQL", Path(folder), lambda name: empty_database(url, name))
    return 0


def _compare(engine: str, folder: Path, new_database: Callable[[str], str]) -> None:
    turns = _work_in_turns(folder, new_database)
    name = _name(engine)
    # By the clock, and by processor time, which is more exact on a busy computer.
    by_clock = min(turns, key=lambda turn: turn.seconds)
    by_cpu = min(turns, key=lambda turn: turn.cpu_seconds)
    report(name, by_clock.moves / by_clock.seconds, "per s", at_least=BUDGET_PER_SECOND)
    report(name, by_cpu.moves / by_cpu.cpu_seconds, "per CPU s", at_least=BUDGET_PER_SECOND)
    measured = by_cpu if engine == "SQLite" else by_clock  # by the same clock as the loop: see `_bare_loop`
    stored = _fastest(seconds_by_the_store, measured, folder, lambda turn: new_database(f"stored{turn}"))
    alone = partial(seconds_by_a_bare_loop, shares_transactions=False)
    shared = partial(seconds_by_a_bare_loop, shares_transactions=True)
    bare = _fastest(alone, measured, folder, lambda turn: new_database(f"alone{turn}"))
    batched = _fastest(shared, measured, folder, lambda turn: new_database(f"shared{turn}"))
    print_figure(f"{name}: a bare SQL loop with the same writes", measured.moves / bare, "per s")
    report(f"{name}: the store's pace", bare / stored, "of a bare SQL loop with the same writes", at_least=BUDGET_SHARE)
    print_figure(f"{name}: the store's pace", batched / stored, "of a bare SQL loop with the same transactions")
    worked = measured.cpu_seconds if engine == "SQLite" else measured.seconds
    unit, budget = "of a bare SQL loop with the same writes", BUDGET_WORKER_SHARE[engine]
    report(f"{name}: the whole worker's pace", bare / worked, unit, at_least=budget)
    with _on_one_core():
        turns = _work_in_turns(folder, lambda database: new_database(f"{database}one"))
    print_figure(f"{name}: on one core", max(turn.moves / turn.cpu_seconds for turn in turns), "per CPU s")


def _name(engine: str) -> str:
    return f"moves of the state machine, {engine}"


def _calls_per_move(folder: Path) -> float:
    calls = itertools.count()

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            next(calls)

    @contextmanager
    def counting() -> Iterator[None]:
        threading.setprofile(count)
        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    with _filled(f"sqlite:///{folder}/counted.db", folder) as store:
        measured = asyncio.run(_work(store, folder, home=folder / "counted", during=counting()))
    return next(calls) / measured.moves


@contextmanager
def _on_one_core() -> Iterator[None]:
    """This thread and all that it starts; elsewhere than on Linux it changes nothing."""
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _work_in_turns(folder: Path, new_database: Callable[[str], str]) -> list[Measured]:
    return [_worked(turn, folder, new_database) for turn in range(_TURNS)]


def _worked(turn: int, folder: Path, new_database: Callable[[str], str]) -> Measured:
    with _filled(new_database(f"worked{turn}"), folder) as store:
        home = Path(tempfile.mkdtemp(prefix="home", dir=folder))
        return asyncio.run(_work(store, folder, home=home, during=nullcontext()))


def _fastest(
    take: Callable[[Store, Sequence[Batch]], float],
    measured: Measured,
    folder: Path,
    new_database: Callable[[int], str],
) -> float:
    """The shortest of several times; other load on the computer only makes them longer."""
    seconds = []
    for turn in range(_TURNS):
        with _filled(new_database(turn), folder) as store:
            seconds.append(take(store, measured.batches))
    return min(seconds)


@contextmanager
def _filled(url: str, folder: Path) -> Iterator[Store]:
    """A store in which all jobs are queued."""
    store = Store(Database(url))
    try:
        dataset = small_dataset(folder)
        for number in range(JOBS):
            store.jobs.submit(job_spec(number, dataset, steps=_SCRIPT.training_steps))
        yield store
    finally:
        store.close()


async def _work(store: Store, folder: Path, *, home: Path, during: AbstractContextManager[None]) -> Measured:
    recipe = find(RECIPE)
    store.leases = recording = RecordingLeases(store)
    pyz = folder / "trackside.pyz"
    pyz.write_bytes(b"trackside")
    world = World(
        store=store,
        providers={"fake": FakeProvider()},
        connect=_Machines(),
        find_recipe=lambda _reference: recipe,
        secrets=lambda _name: None,
        home=home,
        trackside=pyz,
        policy=_POLICY,
    )
    worker = Worker(world)
    set_aside()  # as the command does that starts a worker
    began, used = time.perf_counter(), time.process_time()

    async def all_ended() -> bool:
        return await world.ask_store(store.jobs.count_needing_a_worker) == 0

    with during:
        async with asyncio.timeout(_MOST_SECONDS):
            await worker.run(until=all_ended)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - used
    await world.close()
    return Measured(seconds=seconds, cpu_seconds=cpu_seconds, moves=_moves(store), batches=tuple(recording.batches))


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
    """Number of state changes, from the events; every job must have reached its end."""
    moves = 0
    for job in store.jobs.listed(with_ended=True, limit=JOBS + 1):
        if job.outcome is not Outcome.COMPLETED:
            raise SystemExit(f"{job.id} is {job.state} {job.outcome}: the measure is worthless")
        moves += sum(event.kind == "state" for event in store.events.of_job(job.id))
    return moves


if __name__ == "__main__":
    sys.exit(main())
