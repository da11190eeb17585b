"""Asking for many jobs at once: what is wanted while one question is being answered goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Together(Generic[Key, Answer]):
    """One question to the store for all who wait for an answer of its kind; a job alone waits no longer for it."""

    ask: Callable[[frozenset[Key]], Awaitable[Mapping[Key, Answer]]]
    _waiting: list[tuple[Key, asyncio.Future[Answer]]] = field(default_factory=list)
    _asking: asyncio.Task[None] | None = None

    async def of(self, key: Key) -> Answer:
        """The answer for `key`, asked after this call was made. Raises whatever asking raised."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, answer))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_until_none_waits())
        return await answer

    async def _ask_until_none_waits(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # lets those come along who are ready now
                batch, self._waiting = self._waiting, []
                await self._answer(batch)
        finally:
            self._asking = None

    async def _answer(self, batch: list[tuple[Key, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self.ask(frozenset(key for key, _ in batch))
        except BaseException as problem:
            for _, waiting in batch:
                if not waiting.done():  # else its job was interrupted meanwhile
                    waiting.set_exception(problem)
            if isinstance(problem, asyncio.CancelledError):
                raise
            return
        for key, waiting in batch:
            if not waiting.done():
                waiting.set_result(answers[key])
