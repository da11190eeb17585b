"""Simulators, workers and sweepers for tests, forked from a process that has imported everything already.

Run as a program it says that it is ready, reads one order per line (JSON), and answers each with the pid of the
process that it forked for it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stationmaster.control.wiring.build import build_world
from stationmaster.control.wiring.open_store import open_store
from stationmaster.control.worker.background import WorkerLock
from stationmaster.control.worker.service import serve_sweeper
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.control.worker.worker import Worker
from stationmaster.settings import Settings
from stationmaster.simulator.server import Simulator, SimulatorSettings
from stationmaster.store.store import Store
from tests.support.vast.simulated_vast import quick_settings

_LOCK_SECONDS, _LOCK_LOOK_SECONDS = 5.0, 0.05
# Every forked worker would import these; here they are imported once.
_WANTED_SOON = (
    "anyio._backends._asyncio",
    "certifi",
    "httpcore",
    "stationmaster.providers.vastai.provider",
    "stationmaster.remote.ssh",
)
_HURRIED = {
    "provider_look_seconds": 0.25,
    "retry_seconds": (0.1, 0.2, 0.5),
    "attempt_seconds": (0.1,),
    "room_look_seconds": 0.2,
    "queued_start_seconds": 0.5,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StormOrder:
    """One process: a `worker`, which leaves when nothing needs it any more; a `sweeper` or a `simulator`, which stay.

    A simulator writes its address to the file `url` in its home.
    """

    role: str
    log: str
    environ: Mapping[str, str] = field(default_factory=dict)
    policy: Mapping[str, float] = field(default_factory=dict)
    simulator: Mapping[str, Any] = field(default_factory=dict)


def main() -> None:
    for name in _WANTED_SOON:
        importlib.import_module(name)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    for line in sys.stdin:
        order = StormOrder(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            _become(order)
        print(pid, flush=True)


def _become(order: StormOrder) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _point_streams(order.log)
        _serve(order)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        Path(f"{order.log}.{os.getpid()}.exit").write_text(str(status))
        os._exit(status)


def _serve(order: StormOrder) -> None:
    if order.role == "simulator":
        asyncio.run(_simulate(quick_settings(Path(order.simulator["home"]), **_but_home(order.simulator))))
        return
    source = SettingsSource(order.environ, folder=Path(order.environ["STATIONMASTER_HOME"]))
    if order.role == "sweeper":
        serve_sweeper(source)
    else:
        _serve_worker(source.settings, order)


def _but_home(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "home"}


async def _simulate(settings: SimulatorSettings) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Simulator(settings) as simulator:
        fresh = settings.home / "url.new"
        fresh.write_text(simulator.url)
        fresh.rename(settings.home / "url")
        await stop.wait()


def _point_streams(log: str) -> None:
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _serve_worker(settings: Settings, order: StormOrder) -> None:
    """As the product's own worker, but in a hurry."""
    lock = WorkerLock(settings.home)
    ends = time.monotonic() + _LOCK_SECONDS
    while not lock.take(log=Path(order.log)):
        assert time.monotonic() < ends, "another worker does not leave"
        time.sleep(_LOCK_LOOK_SECONDS)
    store = open_store(settings)
    store.leases.free_all()
    try:
        asyncio.run(_work(settings, order, store))
    finally:
        store.close()
        lock.release()


async def _work(settings: Settings, order: StormOrder, store: Store) -> None:
    world = build_world(settings, order.environ, store)
    world.policy = replace(world.policy, **{**_HURRIED, **order.policy})  # type: ignore[arg-type]
    worker = Worker(world)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.leave)

    async def is_over() -> bool:
        return await world.ask_store(store.jobs.count_needing_a_worker) == 0

    try:
        await worker.run(until=is_over)
    finally:
        await world.close()


if __name__ == "__main__":
    main()
