"""Turns at a provider's API, shared by all processes on one store: calls of one kind keep their distance.

The service measures the distance between calls as they reach it. A turn is taken some time before that: the first call
of a process, which opens its connection slowly, would come too close to the second. So the interval is counted from the
answer, by which the service has seen the call for certain.
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
_SOON = 0.001  # seconds; the turn of somebody else may end while it is looked at


class TurnLimiter:
    """Each call takes the next free moment, by the database's clock.

    Who waits has taken nothing yet: a process that is killed while it waits leaves no turn behind that others would
    wait for. A turn is taken with the call, and keeps the others away for one interval after its answer.
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
        """Returns when the call may be made, after as many pauses as it takes. With `continues` it belongs to the call
        before it: it goes at once if nobody else took a turn meanwhile, and whoever comes next waits for both."""
        try:
            while True:
                wait = await asyncio.to_thread(
                    self.take_turn, account, endpoint, interval_seconds=interval_seconds, continues=continues
                )
                if wait <= 0:
                    return
                await pause(wait)
        except StoreError as problem:
            # The sweeper has to work where nothing can be written: then it keeps at least its own calls apart.
            log.warning("limiter.alone", problem=str(problem))
        wait = self._take_own_turn((account, endpoint), interval_seconds, continues=continues)
        if wait > 0:
            await pause(wait)

    async def answered(
        self, account: str, endpoint: str, *, interval_seconds: float, pause_seconds: float = 0.0
    ) -> None:
        """The call that had the turn is over: the next may follow an interval from now, and `pause_seconds` from now
        at the soonest. Never raises: the answer of the service counts, whatever becomes of the turn."""
        try:
            await asyncio.to_thread(
                self.prolong_turn, account, endpoint, interval_seconds=interval_seconds, pause_seconds=pause_seconds
            )
        except StoreError:
            name, end = (account, endpoint), time.monotonic() + max(interval_seconds, pause_seconds)
            self._own_turns[name] = max(self._own_turns.get(name, end), end)

    def take_turn(self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False) -> float:
        """0 when the turn is taken; else nothing is, and the seconds until somebody may try again."""
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

    def prolong_turn(self, account: str, endpoint: str, *, interval_seconds: float, pause_seconds: float = 0.0) -> None:
        """The turn that was taken last lasts longer by the time that its call took, and at least for `pause_seconds`.

        A call that got no answer for long makes nobody wait for more than one interval.
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
            if end == self._last_turns.get(name):  # else it is somebody else's turn by now
                self._last_turns[name] = later

    def _take_own_turn(self, name: tuple[str, str], interval_seconds: float, *, continues: bool) -> float:
        now = time.monotonic()
        turn = max(self._own_turns.get(name, now), now)
        self._own_turns[name] = turn + interval_seconds
        return 0.0 if continues else turn - now
