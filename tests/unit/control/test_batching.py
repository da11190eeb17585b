"""Questions of many jobs become one, and nobody suffers for a neighbour who left."""

from __future__ import annotations

import asyncio

import pytest

from stationmaster.control.flow.batching import BatchedQuery
from stationmaster.errors import StoreError
from tests.support.asynchronous_tests import asynchronous, until


class Store:
    """Answers when told to; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[frozenset[str]] = []
        self.may_answer = asyncio.Event()
        self.problem: Exception | None = None

    async def answer(self, keys: frozenset[str]) -> dict[str, str]:
        self.asked.append(keys)
        await self.may_answer.wait()
        if self.problem is not None:
            raise self.problem
        return {key: key.upper() for key in keys}


@asynchronous
async def test_what_comes_while_one_question_is_answered_goes_into_the_next() -> None:
    store = Store()
    query = BatchedQuery(store.answer)
    first = [asyncio.create_task(query.of(key)) for key in ("a", "b")]
    await until(lambda: bool(store.asked), what="a question")
    second = [asyncio.create_task(query.of(key)) for key in ("b", "c", "c")]
    await asyncio.sleep(0)
    store.may_answer.set()
    assert await asyncio.gather(*first, *second) == ["A", "B", "B", "C", "C"]
    assert store.asked == [{"a", "b"}, {"b", "c"}], "an answer from before would be as old as its question"


@asynchronous
async def test_one_who_leaves_takes_no_answer_from_others() -> None:
    store = Store()
    query = BatchedQuery(store.answer)
    leaver, stayer = (asyncio.create_task(query.of("a")) for _ in range(2))
    await until(lambda: bool(store.asked), what="a question")
    leaver.cancel()
    store.may_answer.set()
    assert await stayer == "A"
    with pytest.raises(asyncio.CancelledError):
        await leaver


@asynchronous
async def test_a_store_that_fails_fails_for_all_who_asked_and_is_asked_again_by_the_next() -> None:
    store = Store()
    store.problem = StoreError("the store does not answer")
    store.may_answer.set()
    query = BatchedQuery(store.answer)
    failed = await asyncio.gather(query.of("a"), query.of("b"), return_exceptions=True)
    assert list(failed) == [store.problem] * 2
    store.problem = None
    assert await query.of("a") == "A"
