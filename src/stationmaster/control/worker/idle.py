"""When a background worker may go."""

from __future__ import annotations

import asyncio
import time

from stationmaster.control.worker.background import WorkerLock
from stationmaster.store.store import Store


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
