from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asynchronous_tests import asynchronous
from stationmaster.errors import StoreError
from stationmaster.store.engine import Database
from stationmaster.store.limiter import TurnLimiter
from stationmaster.store.store import Store

OpenStore = Callable[..., Store]


def test_the_first_call_goes_at_once(store: Store) -> None:
    assert store.limiter.take_turn("default", "create", interval_seconds=4.5) == 0.0


def test_calls_of_one_kind_keep_their_distance(store: Store) -> None:
    waits = [store.limiter.take_turn("default", "create", interval_seconds=60.0) for _ in range(3)]
    assert waits[0] == 0.0
    assert 55.0 < waits[1] <= 60.0
    assert 115.0 < waits[2] <= 120.0


def test_other_accounts_and_other_calls_do_not_wait(store: Store) -> None:
    store.limiter.take_turn("default", "create", interval_seconds=60.0)
    assert store.limiter.take_turn("default", "list", interval_seconds=60.0) == 0.0
    assert store.limiter.take_turn("second", "create", interval_seconds=60.0) == 0.0


def test_a_turn_long_past_does_not_make_anybody_wait(open_store: OpenStore) -> None:
    open_store().limiter.take_turn("default", "create", interval_seconds=60.0)
    assert open_store(later=120.0).limiter.take_turn("default", "create", interval_seconds=60.0) == 0.0


def test_turns_taken_at_once_by_many_processes_are_all_different(open_store: OpenStore) -> None:
    limiters = [open_store().limiter for _ in range(4)]
    with ThreadPoolExecutor(len(limiters)) as threads:
        taken = threads.map(
            lambda limiter: [limiter.take_turn("default", "read", interval_seconds=100.0) for _ in range(5)], limiters
        )
    turns = sorted(round(wait / 100.0) for waits in taken for wait in waits)
    assert turns == list(range(20))


@asynchronous
async def test_waiting_lasts_until_the_turn(store: Store) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    limiter = TurnLimiter(store.database, sleep=sleep)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=30.0)
    assert slept == []
    await limiter.wait_for_turn("default", "destroy", interval_seconds=30.0)
    assert len(slept) == 1
    assert 25.0 < slept[0] <= 30.0


@asynchronous
async def test_where_nothing_can_be_written_a_process_keeps_its_own_calls_apart(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/absent/store.db")  # its folder is not there, so it cannot be opened
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    limiter = TurnLimiter(database, sleep=sleep)
    with pytest.raises(StoreError):
        limiter.take_turn("default", "destroy", interval_seconds=30.0)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=30.0)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=30.0)
    database.close()
    assert len(slept) == 1
    assert 25.0 < slept[0] <= 30.0
