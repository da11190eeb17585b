"""Worker processes for crash tests, forked from one that has imported everything already.

Run as a program it reads one order per line (JSON) and answers with the pid of the worker that it forked for it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import World
from stationmaster.control.worker.background import WorkerLock
from stationmaster.control.worker.worker import Worker
from stationmaster.model import Access, Listing
from stationmaster.providers.base import Provider
from stationmaster.providers.fake import FakeProvider
from stationmaster.providers.loopback import LoopbackProvider
from stationmaster.recipes.registry import find
from stationmaster.remote.base import Completed, Remote
from stationmaster.remote.connect import connect
from stationmaster.remote.fake import Call, FakeRemote
from stationmaster.remote.pyz import build_pyz
from stationmaster.settings import MonitoringSettings
from stationmaster.store.store import Store
from tests.support.chaos.machines import NumberedLoopback
from tests.support.chaos.points import LEASING, LeaseWatchedDatabase, Point, Watched, WatchedDatabase
from tests.support.policies import changed

REFUSED, BROKEN = 3, 4
_LOCK_SECONDS = 5.0
_PASSED_ON = ("PATH", "HOME", "LANG")

POLICY = Policy(
    monitoring=MonitoringSettings(poll_interval=0.2, watch_interval=0.1),
    provider_look_seconds=0.1,
    retry_seconds=(0.1, 0.3, 1.0),
    attempt_seconds=(0.1,),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One worker. It dies at the `kill_nth` point that it passes while the job is in `kill_state`, a moment later."""

    url: str
    home: str
    log: str
    kill_state: str | None = None
    kill_nth: int = 0
    kill_delay_seconds: float = 0.0
    stop_at: str | None = None  # the point at which it stops itself, as by SIGSTOP
    stop_nth: int = 1  # how many times it comes there until it does
    lease_seconds: float = 20.0
    renew_seconds: float = 5.0
    look_seconds: float = 2.0
    lock_patience_seconds: float = _LOCK_SECONDS
    slots: int = 64
    stays: bool = False  # until it is asked to leave, even if there is nothing to do
    machines: str = "loopback"  # or "fake"; "hanging" is a fake whose provider never answers


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    for line in sys.stdin:
        order = Order(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            _become_worker(order)
        print(pid, flush=True)


def _become_worker(order: Order) -> None:
    status = BROKEN
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _point_streams(order.log)
        status = run_worker(order)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        Path(f"{order.log}.{os.getpid()}.exit").write_text(str(status))
        os._exit(status)


def _point_streams(log: str) -> None:
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def run_worker(order: Order) -> int:
    """What the worker's process does: alone on SQLite, one of many on PostgreSQL."""
    lock = WorkerLock(Path(order.home))
    kind = LeaseWatchedDatabase if order.stop_at == LEASING else WatchedDatabase
    database = kind(order.url, _point_of(order))
    if database.is_sqlite and not _take(lock, order):
        return REFUSED
    store = Store(database)
    if database.is_sqlite:
        store.leases.free_all()
    try:
        asyncio.run(_work(order, store))
    finally:
        store.close()
    return 0


def _take(lock: WorkerLock, order: Order) -> bool:
    """A process that was killed while it started another leaves the lock with that one for a moment."""
    ends = time.monotonic() + order.lock_patience_seconds
    while not lock.take(log=Path(order.log)):
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


async def _work(order: Order, store: Store) -> None:
    point = _point_of(order)
    home = Path(order.home)
    provider, reach = _edges(order, home)
    world = World(
        store=store,
        providers={provider.name: Watched(provider, "provider", point)},
        connect=lambda access: Watched(reach(access), "remote", point),
        find_recipe=find,
        secrets=lambda _name: None,
        home=home,
        trackside=build_pyz(home / "trackside"),
        policy=changed(POLICY, worker=_pace(order), sweep={"grace": 0.5}),
    )
    worker = Worker(world)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.leave)

    async def is_over() -> bool:
        return not order.stays and await world.ask_store(store.jobs.count_needing_a_worker) == 0

    try:
        await worker.run(until=is_over)
    finally:
        await world.close()


def _pace(order: Order) -> dict[str, float]:
    pace = {"lease": order.lease_seconds, "renew": order.renew_seconds, "look": order.look_seconds}
    return {**pace, "slots": order.slots, "sweep": 0.5}


def _edges(order: Order, home: Path) -> tuple[Provider, Callable[[Access], Remote]]:
    if order.machines == "hanging":
        return HangingProvider(), lambda _access: HangingRemote()
    if order.machines == "fake":
        return FakeProvider(), lambda _access: HangingRemote()
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return NumberedLoopback(LoopbackProvider(home / "machines", environment=passed_on), home), connect


class HangingProvider(FakeProvider):
    """Whoever asks it for its machines keeps the job in its hands for ever, and its lease renewed."""

    async def listing(self) -> Listing:
        await asyncio.Event().wait()
        raise AssertionError("never set")


class HangingRemote(FakeRemote):
    async def _execute(self, call: Call) -> Completed:
        await asyncio.Event().wait()
        raise AssertionError("never set")


_POINTS: dict[int, Point] = {}


def _point_of(order: Order) -> Point:
    """The same one for the store and the edges of a process."""
    return _POINTS.setdefault(os.getpid(), _new_point(order))


def _new_point(order: Order) -> Point:
    if order.kill_state is not None:
        return KillInState(order)
    if order.stop_at is not None:
        return StopOnce(order.stop_at, nth=order.stop_nth)
    return lambda _name: None


class KillInState:
    """SIGKILL to this very process at a point, or a moment after it, in the midst of what follows."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._path = order.url.removeprefix("sqlite:///")
        self._passed = 0
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        with self._lock:
            if self._state() != self._order.kill_state:
                return
            self._passed += 1
            if self._passed != self._order.kill_nth:
                return
        print(f"killed at {name} in {self._order.kill_state}", flush=True)
        if self._order.kill_delay_seconds:
            threading.Timer(self._order.kill_delay_seconds, _kill_ourselves).start()
        else:
            _kill_ourselves()

    def _state(self) -> str:
        connection = sqlite3.connect(self._path, timeout=150)
        try:
            return str(connection.execute("SELECT state FROM jobs").fetchone()[0])
        finally:
            connection.close()


class StopOnce:
    """SIGSTOP to this very process at the point of that name, the nth time it comes there."""

    def __init__(self, name: str, *, nth: int) -> None:
        self._name = name
        self._times = itertools.count(1)
        self._nth = nth

    def __call__(self, name: str) -> None:
        if name == self._name and next(self._times) == self._nth:
            # To this very thread: one that is meant for the process may reach another, and this one goes on meanwhile.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _kill_ourselves() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def as_line(order: Order) -> str:
    values: Mapping[str, object] = asdict(order)
    return json.dumps(values) + "\n"


if __name__ == "__main__":
    main()
