"""Turns at a provider's API, shared by all processes on one store: calls of one kind keep their distance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects import postgresql, sqlite

from stationmaster.errors import StoreError
from stationmaster.store.engine import Database
from stationmaster.store.tables import call_turns

log = structlog.get_logger(__name__)


class TurnLimiter:
    """Each call takes the next free moment, by the database's clock, and waits for it."""

    def __init__(self, database: Database, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._database = database
        self._sleep = sleep
        self._own_turns: dict[tuple[str, str], float] = {}

    async def wait_for_turn(self, account: str, endpoint: str, *, interval_seconds: float) -> None:
        """Returns when the call may be made. A turn that is then not used is lost, and does no harm."""
        try:
            wait = await asyncio.to_thread(self.take_turn, account, endpoint, interval_seconds=interval_seconds)
        except StoreError as problem:
            # The sweeper has to work where nothing can be written: then it keeps at least its own calls apart.
            log.warning("limiter.alone", problem=str(problem))
            wait = self._take_own_turn((account, endpoint), interval_seconds)
        if wait > 0:
            await self._sleep(wait)

    def take_turn(self, account: str, endpoint: str, *, interval_seconds: float) -> float:
        """Seconds until the turn just taken; no two callers get turns closer than the interval of the later one's
        predecessor."""
        now = self._database.now
        insert = (sqlite if self._database.is_sqlite else postgresql).insert(call_turns)
        later = sa.func.max if self._database.is_sqlite else sa.func.greatest
        take = (
            insert.values(account=account, endpoint=endpoint, next_at=now + interval_seconds)
            .on_conflict_do_update(
                index_elements=["account", "endpoint"],
                set_={"next_at": later(call_turns.c.next_at, now) + interval_seconds},
            )
            .returning(call_turns.c.next_at - interval_seconds - now)
        )
        with self._database.write() as connection:
            return max(0.0, float(connection.execute(take).scalar_one()))

    def _take_own_turn(self, name: tuple[str, str], interval_seconds: float) -> float:
        now = time.monotonic()
        turn = max(self._own_turns.get(name, now), now)
        self._own_turns[name] = turn + interval_seconds
        return turn - now
