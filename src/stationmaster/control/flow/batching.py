"""Coalesces calls of many jobs: everything queued while one batch runs goes into the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from stationmaster.control.flow.clock import boottime

Item = TypeVar("Item")
Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Batcher(Generic[Item, Result]):
    """Runs one batch at a time; an item that comes alone is run at once.

    `interval_seconds` is the least time from the start of one batch to the start of the next: live streams always have
    something to write, and one transaction every tenth of a second is enough for all of them.
    """

    run_batch: Callable[[Sequence[Item]], Awaitable[Sequence[Result | BaseException]]]
    interval_seconds: float = 0.0
    _queue: list[tuple[Item, asyncio.Future[Result]]] = field(default_factory=list)
    _running: asyncio.Task[None] | None = None
    _started_at: float = 0.0

    async def run(self, item: Item) -> Result:
        """The item's own result, from a batch that started after this call. Raises the item's own error."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.append((item, result))
        if self._running is None:
            self._running = asyncio.create_task(self._run_until_empty())
        return await result

    async def _run_until_empty(self) -> None:
        try:
            while self._queue:
                # Even a sleep of 0 lets other tasks that are ready join this batch.
                await asyncio.sleep(max(0.0, self._started_at + self.interval_seconds - boottime()))
                batch, self._queue = self._queue, []
                self._started_at = boottime()
                await self._run(batch)
        finally:
            self._running = None

    async def _run(self, batch: Sequence[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self.run_batch([item for item, _ in batch])
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


@dataclass(slots=True)
class BatchedQuery(Generic[Key, Answer]):
    """One query for every key that is waited for."""

    query: Callable[[frozenset[Key]], Awaitable[Mapping[Key, Answer]]]
    _batcher: Batcher[Key, Answer] = field(init=False)

    def __post_init__(self) -> None:
        self._batcher = Batcher(self._run)

    async def of(self, key: Key) -> Answer:
        """The answer for `key`, from a query that started after this call. Raises what the query raised."""
        return await self._batcher.run(key)

    async def _run(self, keys: Sequence[Key]) -> list[Answer]:
        answers = await self.query(frozenset(keys))
        return [answers[key] for key in keys]
