"""Time that passes only when everything waits for it: a test of days takes seconds and never depends on luck."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from stationmaster.control.monitoring.timing import Timing

_TURNS = 20  # of the event loop, after which everything that can go on has gone on


class VirtualTime:
    def __init__(self, start: float = 1_000_000.0) -> None:
        self.now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self.timing = Timing(clock=lambda: self.now, monotonic=lambda: self.now, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + max(0.0, seconds), next(self._numbers), future))
        await future

    async def pass_by(self, seconds: float, *, while_busy: Callable[[], bool] = lambda: False) -> None:
        """Let this much time pass. It stands still while `while_busy`, for answers that take real time."""
        end = self.now + seconds
        while True:
            await _settle(while_busy)
            if not self._sleepers or self._sleepers[0][0] > end:
                break
            self.now, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
        self.now = end


async def _settle(busy: Callable[[], bool]) -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    while busy():
        await asyncio.sleep(0.001)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
