"""A worker process that reloads changed settings: each set of settings gets a worker of its own.

When a settings file has changed, a worker with the new settings makes all further visits. The worker before it claims
nothing more and ends with its last visit: no visit sees two sets of settings, and none is interrupted.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial

from stationmaster.control.messages.messaging import open_messaging
from stationmaster.control.wiring.build import build_world
from stationmaster.control.wiring.open_store import open_store
from stationmaster.control.worker.abilities import abilities_of, differing, digests_of
from stationmaster.control.worker.background import WorkerLock
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.control.worker.worker import Worker
from stationmaster.errors import StationmasterError, StoreError
from stationmaster.event_log import get_logger
from stationmaster.model import Alert
from stationmaster.store.store import Store

log = get_logger("stationmaster.worker")

SETTINGS = "settings"
"""The alert while changed settings are invalid and the previous ones stay in force."""


class ReloadingWorker:
    """The workers of one process: the newest claims jobs, older ones may be finishing their last visits."""

    def __init__(self, source: SettingsSource, lock: WorkerLock, *, background: bool) -> None:
        self._source = source
        self._lock = lock
        self._background = background
        self._workers: set[ConfiguredWorker] = set()
        self._is_leaving = False
        self._problem: str | None = None

    async def run(self) -> None:
        """Work until asked to stop; in the background also until nothing is left to do."""
        first = ConfiguredWorker(self._source)
        if first.settings.uses_sqlite:
            # The lock shows that no other worker lives: no need to wait until leases expire.
            first.store.leases.free_all()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._leave)
        async with asyncio.TaskGroup() as tasks:
            self._begin(first, tasks)

    def _leave(self) -> None:
        self._is_leaving = True
        for each in self._workers:
            each.worker.leave()

    def _begin(self, current: ConfiguredWorker, tasks: asyncio.TaskGroup) -> None:
        self._workers.add(current)
        if self._is_leaving:
            current.worker.leave()
        tasks.create_task(self._serve(current, tasks))

    async def _serve(self, current: ConfiguredWorker, tasks: asyncio.TaskGroup) -> None:
        async def relieved() -> bool:
            following = await self._following(current)
            if following is not None:
                self._begin(following, tasks)
            return following is not None

        try:
            await current.worker.run(until=current.idle(self._lock) if self._background else None, relieved=relieved)
        finally:
            self._workers.discard(current)
            await current.close()

    async def _following(self, current: ConfiguredWorker) -> ConfiguredWorker | None:
        """The worker that takes over because the settings have changed; None if they have not or are invalid."""
        try:
            has_read = await asyncio.to_thread(self._source.reread)
            if self._source.settings is current.settings:
                if has_read:
                    await self._report(current, None)
                return None
            following = ConfiguredWorker(self._source)
        except (StationmasterError, OSError) as problem:
            await self._report(current, f"{problem}; the previous settings stay in force")
            return None
        digests = digests_of(following.settings)
        log.info("settings.changed", settings=differing(digests, digests_of(current.settings)))
        self._lock.change(abilities=abilities_of(following.settings), settings=digests)
        await self._report(current, None)
        return following

    async def _report(self, current: ConfiguredWorker, problem: str | None) -> None:
        """Raise or clear the alert, once for each problem."""
        if problem == self._problem:
            return
        self._problem = problem
        if problem is not None:
            log.error("settings.unusable", problem=problem)
        try:
            alerts, ask = current.store.alerts, current.worker.world.ask_store
            await ask(alerts.clear_without_lease, SETTINGS)
            if problem is not None:
                await ask(alerts.raise_without_lease, Alert(kind=SETTINGS, message=problem))
        except StoreError as unanswered:
            log.warning("store.unavailable", problem=str(unanswered))


class ConfiguredWorker:
    """A worker and all its parts for one set of settings. Raises if these are invalid."""

    def __init__(self, source: SettingsSource) -> None:
        self.settings = source.settings
        self.store = open_store(self.settings)
        try:
            world = build_world(self.settings, source.environ, self.store)
            self._messaging = open_messaging(self.settings, self.store)
        except BaseException:
            self.store.close()
            raise
        self.worker = Worker(
            world,
            notifier=self._messaging.notifier,
            low_credit=self.settings.notify.low_credit,
        )

    def idle(self, lock: WorkerLock) -> Callable[[], Awaitable[bool]]:
        """Whether a background worker may exit."""
        registers = self.settings.comfydeploy.api_key is not None
        return Idle(
            self.store,
            lock,
            linger_seconds=self.settings.worker.linger,
            registers=registers,
            withdraw=partial(self.store.workers.withdraw, self.worker.owner),
        ).is_over

    async def close(self) -> None:
        await self._messaging.close()
        await self.worker.world.close()
        self.store.close()


class Idle:
    """A background worker stays while a job is open, a machine may bill or a message waits, plus a linger time."""

    def __init__(
        self,
        store: Store,
        lock: WorkerLock,
        *,
        linger_seconds: float,
        registers: bool = False,
        withdraw: Callable[[], None] = lambda: None,
    ) -> None:
        self._withdraw = withdraw  # from those that other hosts count on
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
        self._lock.announce(is_leaving=True)
        await asyncio.to_thread(self._withdraw)
        if not await self._is_needed():
            return True
        self._lock.announce(is_leaving=False)  # a job came at the last moment
        self._since = None
        return False

    async def _is_needed(self) -> bool:
        waiting = (
            self._store.jobs.count_needing_a_worker,
            self._store.outbox.count_pending,
            *([self._store.models.count_to_register] if self._registers else []),
        )
        return any([await asyncio.to_thread(count) for count in waiting])
