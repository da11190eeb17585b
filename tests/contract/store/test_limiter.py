from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stationmaster.errors import StoreError
from stationmaster.store.engine import Database
from stationmaster.store.limiter import TurnLimiter
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous

OpenStore = Callable[..., Store]

HOUR = 3600.0  # far longer than a test takes, however slow its computer is


def is_almost(wait: float, seconds: float) -> bool:
    """Whether nearly all of the time is left: some has passed since the turn was taken."""
    return seconds - HOUR / 6 < wait <= seconds


def test_the_first_call_goes_at_once(store: Store) -> None:
    assert store.limiter.take_turn("default", "create", interval_seconds=4.5) == 0.0


def test_calls_of_one_kind_keep_their_distance(store: Store) -> None:
    waits = [store.limiter.take_turn("default", "create", interval_seconds=HOUR) for _ in range(3)]
    assert waits[0] == 0.0
    assert all(is_almost(wait, HOUR) for wait in waits[1:])


def test_who_was_killed_while_waiting_leaves_no_turn_behind(open_store: OpenStore) -> None:
    open_store().limiter.take_turn("default", "search", interval_seconds=HOUR)
    for _ in range(10):  # each of them ends here
        assert is_almost(open_store().limiter.take_turn("default", "search", interval_seconds=HOUR), HOUR)
    assert open_store(later=HOUR + 1).limiter.take_turn("default", "search", interval_seconds=HOUR) == 0.0


def test_what_continues_a_call_goes_at_once_and_the_next_caller_waits_for_all_of_it(open_store: OpenStore) -> None:
    searching, other = open_store().limiter, open_store().limiter
    for page in range(5):
        assert searching.take_turn("default", "search", interval_seconds=HOUR, continues=page > 0) == 0.0
    assert is_almost(other.take_turn("default", "search", interval_seconds=HOUR), 5 * HOUR)
    assert is_almost(searching.take_turn("default", "search", interval_seconds=HOUR), 5 * HOUR)


def test_what_continues_a_call_waits_if_somebody_else_came_between(open_store: OpenStore) -> None:
    searching = open_store().limiter
    searching.take_turn("default", "search", interval_seconds=HOUR)
    assert open_store(later=HOUR + 1).limiter.take_turn("default", "search", interval_seconds=HOUR) == 0.0
    assert searching.take_turn("default", "search", interval_seconds=HOUR, continues=True) > 0.0


def test_other_accounts_and_other_calls_do_not_wait(store: Store) -> None:
    store.limiter.take_turn("default", "create", interval_seconds=60.0)
    assert store.limiter.take_turn("default", "list", interval_seconds=60.0) == 0.0
    assert store.limiter.take_turn("second", "create", interval_seconds=60.0) == 0.0


def test_a_turn_long_past_does_not_make_anybody_wait(open_store: OpenStore) -> None:
    open_store().limiter.take_turn("default", "create", interval_seconds=60.0)
    assert open_store(later=120.0).limiter.take_turn("default", "create", interval_seconds=60.0) == 0.0


def test_of_many_processes_that_come_at_once_one_gets_the_turn(open_store: OpenStore) -> None:
    limiters = [open_store().limiter for _ in range(4)]
    with ThreadPoolExecutor(len(limiters)) as threads:
        taken = threads.map(
            lambda limiter: [limiter.take_turn("default", "read", interval_seconds=HOUR) for _ in range(5)], limiters
        )
        waits = [wait for turns in taken for wait in turns]
    assert waits.count(0.0) == 1
    assert all(wait == 0.0 or is_almost(wait, HOUR) for wait in waits)


def test_the_interval_counts_from_the_answer_when_the_service_has_seen_the_call(open_store: OpenStore) -> None:
    calling, answering = open_store(), open_store(later=HOUR / 4)
    limiter = calling.limiter
    assert limiter.take_turn("default", "keys", interval_seconds=HOUR) == 0.0
    limiter._database = answering.database
    limiter.extend_turn("default", "keys", interval_seconds=HOUR)
    assert is_almost(answering.limiter.take_turn("default", "keys", interval_seconds=HOUR), HOUR)


def test_a_call_that_took_for_ever_makes_nobody_wait_for_more_than_one_interval(open_store: OpenStore) -> None:
    limiter, later = open_store().limiter, open_store(later=59.0)
    limiter.take_turn("default", "keys", interval_seconds=6.0)
    limiter._database = later.database
    limiter.extend_turn("default", "keys", interval_seconds=6.0)
    assert later.limiter.take_turn("default", "keys", interval_seconds=6.0) == 0.0


def test_pages_that_follow_each_other_are_counted_from_their_answers(open_store: OpenStore) -> None:
    searching, other = open_store().limiter, open_store(later=HOUR)
    for page in range(5):
        searching._database = open_store(later=page * HOUR / 5).database
        assert searching.take_turn("default", "search", interval_seconds=HOUR, continues=page > 0) == 0.0
        searching._database = open_store(later=(page + 1) * HOUR / 5).database
        searching.extend_turn("default", "search", interval_seconds=HOUR)
    assert is_almost(other.limiter.take_turn("default", "search", interval_seconds=HOUR), 5 * HOUR)


def test_the_pause_that_a_service_asks_for_is_kept_by_everybody(open_store: OpenStore) -> None:
    limiter, other = open_store().limiter, open_store().limiter
    limiter.take_turn("default", "create", interval_seconds=4.5)
    limiter.extend_turn("default", "create", interval_seconds=4.5, pause_seconds=HOUR)
    assert is_almost(other.take_turn("default", "create", interval_seconds=4.5), HOUR)


@asynchronous
async def test_waiting_lasts_until_the_turn(open_store: OpenStore) -> None:
    slept: list[float] = []
    store, later = open_store(), open_store(later=HOUR + 1)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        limiter._database = later.database

    limiter = TurnLimiter(store.database)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=HOUR, pause=sleep)
    assert slept == []
    await limiter.wait_for_turn("default", "destroy", interval_seconds=HOUR, pause=sleep)
    assert len(slept) == 1
    assert is_almost(slept[0], HOUR)


@asynchronous
async def test_where_nothing_can_be_written_a_process_keeps_its_own_calls_apart(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/absent/store.db")  # its folder is not there, so it cannot be opened
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    limiter = TurnLimiter(database)
    with pytest.raises(StoreError):
        limiter.take_turn("default", "destroy", interval_seconds=HOUR)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=HOUR, pause=sleep)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=HOUR, pause=sleep)
    database.close()
    assert len(slept) == 1
    assert is_almost(slept[0], HOUR)


@asynchronous
async def test_where_nothing_can_be_written_the_answer_still_counts(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/absent/store.db")
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    limiter = TurnLimiter(database)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=HOUR, pause=sleep)
    await limiter.note_answer("default", "destroy", interval_seconds=HOUR, pause_seconds=3 * HOUR)
    await limiter.wait_for_turn("default", "destroy", interval_seconds=HOUR, pause=sleep)
    database.close()
    assert len(slept) == 1
    assert is_almost(slept[0], 3 * HOUR)
