"""Tells workers which jobs are watched now: they look at those more often."""

from __future__ import annotations

import os
import secrets
import time

from stationmaster.model import Job, State
from stationmaster.store.store import Store

_INTEREST_SECONDS = 10.0


class Interest:
    """The interest of this process, however many people watch a job through it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watcher = f"{os.getpid()}-{secrets.token_hex(3)}"
        self._registered_at: dict[str, float] = {}  # by job, on the monotonic clock

    def register(self, job: Job) -> None:
        """The job is being watched: written again only when half of the time is over, and only for a training."""
        now = time.monotonic()
        if job.state is not State.EXECUTING or self._registered_at.get(job.id, -_INTEREST_SECONDS) > self._stale(now):
            return
        current = self._registered_at.copy().items()  # a copy: other threads register too
        self._registered_at = {job_id: at for job_id, at in current if at > self._stale(now)} | {job.id: now}
        self._store.watchers.register(job.id, self._watcher, seconds=_INTEREST_SECONDS)

    @staticmethod
    def _stale(now: float) -> float:
        return now - _INTEREST_SECONDS / 2
