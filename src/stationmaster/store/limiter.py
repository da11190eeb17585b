"""A rate limit for provider APIs, shared by all processes on one store: calls to one endpoint take turns.

The service measures the interval between calls as they arrive. A process takes its turn some time before that, and its
first call, which opens the connection, is slow: it could arrive too close to the second. So the interval counts from
the response, by which time the service has certainly seen the call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import sqlalchemy as sa

from stationmaster.errors import StoreError
from stationmaster.event_log import get_logger
from stationmaster.store.bulk import insert_into
from stationmaster.store.engine import Database
from stationmaster.store.tables import call_turns

log = get_logger(__name__)
_SOON = 0.001  # seconds; another turn may end while this query runs


class TurnLimiter:
    """Each call takes the next free turn, by the database's clock.

    A waiting process has not taken a turn yet, so one that is killed while it waits does not delay others. A turn is
    taken right before the call and blocks others until one interval after the response.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last_turns: dict[tuple[str, str], float] = {}
        self._taken_at: dict[tuple[str, str], float] = {}
        self._own_turns: dict[tuple[str, str], float] = {}

    async def wait_for_turn(
        self,
        account: str,
        endpoint: str,
        *,
        interval_seconds: float,
        continues: bool = False,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Wait until the call may be made. With `continues` it belongs to the previous call: it goes at once if no
        other process took a turn meanwhile, and the next caller waits for both."""
        try:
            while True:
                wait = await asyncio.to_thread(
                    self.take_turn, account, endpoint, interval_seconds=interval_seconds, continues=continues
                )
                if wait <= 0:
                    return
                await pause(wait)
        except StoreError as problem:
            # The sweeper must work even if the store cannot be written: then limit at least its own calls.
            log.warning("limiter.alone", problem=str(problem))
        wait = self._take_own_turn((account, endpoint), interval_seconds, continues=continues)
        if wait > 0:
            await pause(wait)

    async def note_answer(
        self, account: str, endpoint: str, *, interval_seconds: float, pause_seconds: float = 0.0
    ) -> None:
        """Note that the call has its response: the next may follow after an interval, and not before `pause_seconds`.
        Never raises: the service's response matters more than the turn."""
        try:
            await asyncio.to_thread(
                self.extend_turn, account, endpoint, interval_seconds=interval_seconds, pause_seconds=pause_seconds
            )
        except StoreError:
            name, end = (account, endpoint), time.monotonic() + max(interval_seconds, pause_seconds)
            self._own_turns[name] = max(self._own_turns.get(name, end), end)

    def take_turn(self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False) -> float:
        """Take the turn and return 0, or take nothing and return the seconds until the next try."""
        now, next_at = self._database.now, call_turns.c.next_at
        insert = insert_into(self._database.dialect.name, call_turns)
        later = sa.func.max if self._database.is_sqlite else sa.func.greatest
        is_free = next_at <= now
        if continues and (account, endpoint) in self._last_turns:
            is_free = sa.or_(is_free, next_at == self._last_turns[account, endpoint])
        take = (
            insert.values(account=account, endpoint=endpoint, next_at=now + interval_seconds)
            .on_conflict_do_update(
                index_elements=["account", "endpoint"],
                set_={"next_at": later(next_at, now) + interval_seconds},
                where=is_free,
            )
            .returning(next_at, now)
        )
        mine = sa.and_(call_turns.c.account == account, call_turns.c.endpoint == endpoint)
        with self._database.write() as connection:
            taken = connection.execute(take).one_or_none()
            if taken is not None:
                self._last_turns[account, endpoint], self._taken_at[account, endpoint] = map(float, taken)
                return 0.0
            return max(_SOON, float(connection.execute(sa.select(next_at - now).where(mine)).scalar_one()))

    def extend_turn(self, account: str, endpoint: str, *, interval_seconds: float, pause_seconds: float = 0.0) -> None:
        """Extend the last turn by the time that its call took, and to at least `pause_seconds` from now.

        A slow call extends it by at most one interval.
        """
        now, next_at, name = self._database.now, call_turns.c.next_at, (account, endpoint)
        mine = sa.and_(call_turns.c.account == account, call_turns.c.endpoint == endpoint)
        with self._database.write() as connection:
            found = connection.execute(sa.select(next_at, now).where(mine).with_for_update()).one_or_none()
            if found is None:
                return
            end, answered_at = map(float, found)
            took = min(max(0.0, answered_at - self._taken_at.get(name, answered_at)), interval_seconds)
            later = max(end + took, answered_at + pause_seconds)
            connection.execute(sa.update(call_turns).where(mine).values(next_at=later))
            if end == self._last_turns.get(name):  # otherwise another process has the turn by now
                self._last_turns[name] = later

    def _take_own_turn(self, name: tuple[str, str], interval_seconds: float, *, continues: bool) -> float:
        now = time.monotonic()
        turn = max(self._own_turns.get(name, now), now)
        self._own_turns[name] = turn + interval_seconds
        return 0.0 if continues else turn - now
