"""The worker as a process: opens the parts, works until told to go, closes them in reverse."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping

import structlog

from stationmaster.control.abilities import abilities_of
from stationmaster.control.background import WorkerLock, running_worker
from stationmaster.control.build import build_world, sweep_policy_of, tempo_of
from stationmaster.control.delivering.registering import Registrar
from stationmaster.control.leftovers import keep_tidy
from stationmaster.control.messages.post import open_post
from stationmaster.control.opening import open_store
from stationmaster.control.safety.sweep import Sweeper
from stationmaster.control.worker import Worker
from stationmaster.settings import Settings
from stationmaster.store.store import Store

log = structlog.get_logger("stationmaster.worker")


def serve_worker(settings: Settings, environ: Mapping[str, str], *, background: bool) -> bool:
    """Run a worker until it is told to leave; False at once when this home has one already.

    On PostgreSQL many workers may share a store; only one in the background makes sense per home.
    """
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = WorkerLock(settings.home)
    exclusive = settings.uses_sqlite or background
    abilities = abilities_of(settings)
    log_file = settings.home / "worker.log"
    if exclusive and not lock.take(log=log_file, is_background=background, abilities=abilities):
        found = running_worker(settings.home)
        log.info("worker.already_running", pid=found.pid if found else None, home=str(settings.home))
        return False
    store = open_store(settings)
    if settings.uses_sqlite:
        store.leases.take_from_the_dead()  # the lock says that we are alone: nobody's lease need be waited out
    try:
        asyncio.run(_work(settings, environ, store, lock if background else None))
    finally:
        store.close()
        lock.release()
    return True


def serve_sweeper(settings: Settings, environ: Mapping[str, str], *, once: bool = False) -> None:
    """Sweep every so often, alone on purpose: it needs nothing but the store and the providers."""
    store = open_store(settings, writable=False)
    try:
        asyncio.run(_sweep_for_ever(settings, environ, store, once=once))
    finally:
        store.close()


async def _sweep_for_ever(settings: Settings, environ: Mapping[str, str], store: Store, *, once: bool) -> None:
    world = build_world(settings, environ, store)
    sweeper = Sweeper(world, sweep_policy_of(settings))
    leaving = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leaving.set)
    try:
        while not leaving.is_set():
            report = await sweeper.sweep()
            log.info("sweeper.swept", machines=len(report.findings), gone=len(report.gone), problems=report.problems)
            if once:
                return
            try:
                async with asyncio.timeout(settings.sweep.every):
                    await leaving.wait()
            except TimeoutError:
                pass
    finally:
        await world.close()


async def _work(
    settings: Settings, environ: Mapping[str, str], store: Store, background_lock: WorkerLock | None
) -> None:
    world = build_world(settings, environ, store)
    post = open_post(settings, store)
    worker = Worker(
        world,
        tempo_of(settings),
        sweep_policy=sweep_policy_of(settings),
        notifier=post.notifier,
        low_credit=settings.notify.low_credit,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.leave)
    registrar = Registrar(world, owner=worker.owner, retry_seconds=world.policy.register_retry_seconds)
    helpers = [asyncio.create_task(registrar.run()), asyncio.create_task(keep_tidy(world))]
    try:
        await worker.run(until=_until(settings, store, background_lock))
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.wait(helpers)
        await post.close()
        await world.close()


def _until(settings: Settings, store: Store, lock: WorkerLock | None) -> Callable[[], Awaitable[bool]] | None:
    """When a background worker may go; one in the foreground stays."""
    if lock is None:
        return None
    registers = settings.comfydeploy.api_key is not None
    return Idle(store, lock, linger_seconds=settings.worker.linger, registers=registers).is_over


class Idle:
    """A background worker stays while a job is unfinished, a machine may bill or a message waits, and a bit longer."""

    def __init__(self, store: Store, lock: WorkerLock, *, linger_seconds: float, registers: bool = False) -> None:
        self._store = store
        self._registers = registers
        self._lock = lock
        self._linger_seconds = linger_seconds
        self._since: float | None = None

    async def is_over(self) -> bool:
        if await self._is_needed():
            self._since = None
            return False
        self._since = self._since if self._since is not None else time.monotonic()
        if time.monotonic() - self._since < self._linger_seconds:
            return False
        self._lock.say(is_leaving=True)
        if not await self._is_needed():
            return True
        self._lock.say(is_leaving=False)  # somebody came in the last moment
        self._since = None
        return False

    async def _is_needed(self) -> bool:
        waiting = (
            self._store.jobs.count_needing_a_worker,
            self._store.outbox.count_pending,
            *([self._store.models.count_to_register] if self._registers else []),
        )
        return any([await asyncio.to_thread(count) for count in waiting])
