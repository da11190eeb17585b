"""Doing for many jobs at once: what is wanted while one batch is on its way goes into the next, whatever its number."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from stationmaster.control.flow.clock import boottime

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class Batches(Generic[Item, Result]):
    """Carries out whatever waits, together; an item alone waits no longer for it.

    With a beat it lets so much time pass from one batch to the next: live streams have something to say all the time,
    and one transaction in a tenth of a second does for all of them.
    """

    carry_out: Callable[[Sequence[Item]], Awaitable[Sequence[Result | BaseException]]]
    beat_seconds: float = 0.0
    _waiting: list[tuple[Item, asyncio.Future[Result]]] = field(default_factory=list)
    _working: asyncio.Task[None] | None = None
    _began_at: float = 0.0

    async def put(self, item: Item) -> Result:
        """The item's own result, of a batch that began after this call. Raises what became of it instead."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if self._working is None:
            self._working = asyncio.create_task(self._work_until_none_waits())
        return await result

    async def _work_until_none_waits(self) -> None:
        try:
            while self._waiting:
                # Even 0 lets those come along who are ready now; what comes after a silence need not wait.
                await asyncio.sleep(max(0.0, self._began_at + self.beat_seconds - boottime()))
                batch, self._waiting = self._waiting, []
                self._began_at = boottime()
                await self._work(batch)
        finally:
            self._working = None

    async def _work(self, batch: Sequence[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self.carry_out([item for item, _ in batch])
        except BaseException as problem:
            results = [problem] * len(batch)
            if isinstance(problem, asyncio.CancelledError):
                raise
        finally:
            for (_, waiting), result in zip(batch, results, strict=True):
                if waiting.done():
                    continue  # its job was interrupted meanwhile
                if isinstance(result, BaseException):
                    waiting.set_exception(result)
                else:
                    waiting.set_result(result)
