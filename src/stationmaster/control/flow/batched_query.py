"""Asking for many jobs at once: questions of one kind become one question to the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from stationmaster.control.flow.batching import Batches

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Together(Generic[Key, Answer]):
    """One question for all who wait for an answer of its kind."""

    ask: Callable[[frozenset[Key]], Awaitable[Mapping[Key, Answer]]]
    _questions: Batches[Key, Answer] = field(init=False)

    def __post_init__(self) -> None:
        self._questions = Batches(self._ask)

    async def of(self, key: Key) -> Answer:
        """The answer for `key`, asked after this call was made. Raises whatever asking raised."""
        return await self._questions.put(key)

    async def _ask(self, keys: Sequence[Key]) -> list[Answer]:
        answers = await self.ask(frozenset(keys))
        return [answers[key] for key in keys]
