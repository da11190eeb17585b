"""Workers and sweepers as processes: open the parts, work until asked to stop, close them in reverse."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from stationmaster.control.periodic.sweep import SEPARATE_SWEEP, Sweeper
from stationmaster.control.wiring.build import build_world
from stationmaster.control.wiring.open_store import open_store
from stationmaster.control.worker.abilities import abilities_of, digests_of
from stationmaster.control.worker.background import WorkerLock, running_worker
from stationmaster.control.worker.reloading import ReloadingWorker
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.errors import StationmasterError, StoreError
from stationmaster.event_log import get_logger
from stationmaster.settings.private_home import make_private_home
from stationmaster.store.store import Store

log = get_logger("stationmaster.worker")


def serve_worker(source: SettingsSource, *, background: bool) -> bool:
    """Run a worker until it is asked to stop; False at once when this home has one already.

    On PostgreSQL many workers may share a store; only one in the background makes sense per home.
    """
    settings = source.settings
    make_private_home(settings.home)
    lock = WorkerLock(settings.home)
    exclusive = settings.uses_sqlite or background
    if exclusive and not lock.take(
        log=settings.home / "worker.log",
        is_background=background,
        abilities=abilities_of(settings),
        settings=digests_of(settings),
    ):
        found = running_worker(settings.home)
        log.info("worker.already_running", pid=found.pid if found else None, home=str(settings.home))
        return False
    try:
        asyncio.run(ReloadingWorker(source, lock, background=background).run())
    finally:
        lock.release()
    return True


def serve_sweeper(source: SettingsSource, *, once: bool = False) -> None:
    """Sweep at intervals, in a separate process on purpose: it needs nothing but the store and the providers."""
    store = open_store(source.settings, writable=False)
    try:
        asyncio.run(sweep_repeatedly(source, store, once=once))
    finally:
        store.close()


async def sweep_repeatedly(source: SettingsSource, store: Store, *, once: bool) -> None:
    """Sweep until a signal ends the process, also while the store does not answer for a time."""
    sweeper = _sweeper(source, store)
    leaving = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leaving.set)
    try:
        while not leaving.is_set():
            try:
                report = await sweeper.sweep()
            except StoreError as problem:  # without the store no machine can be judged; the next sweep tries again
                if once:
                    raise
                log.warning("store.unavailable", problem=str(problem))
            else:
                log.info(
                    "sweeper.swept", machines=len(report.findings), gone=len(report.gone), problems=report.problems
                )
                with suppress(StoreError):  # a store that can only be read: sweeping goes on, `doctor` cannot see it
                    await asyncio.to_thread(store.periodic.note_run, SEPARATE_SWEEP)
            if once:
                return
            try:
                async with asyncio.timeout(source.settings.sweep.every):
                    await leaving.wait()
            except TimeoutError:
                sweeper = await _with_newest_settings(sweeper, source, store)
    finally:
        await sweeper.world.close()


async def _with_newest_settings(sweeper: Sweeper, source: SettingsSource, store: Store) -> Sweeper:
    """The same sweeper, or one with changed settings; invalid settings are logged and the old ones stay in force."""
    try:
        if not await asyncio.to_thread(source.reread):
            return sweeper
        following = _sweeper(source, store)
    except (StationmasterError, OSError) as problem:
        log.error("settings.unusable", problem=str(problem))
        return sweeper
    await sweeper.world.close()
    return following


def _sweeper(source: SettingsSource, store: Store) -> Sweeper:
    return Sweeper(build_world(source.settings, source.environ, store))
