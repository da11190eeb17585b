"""Periodic work: which rows there are, who runs them, and that one failing row stops neither itself nor another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.flow.world import World
from stationmaster.control.periodic.table import PeriodicWork, periodic_table, repeat
from stationmaster.money import ZERO, from_dollars
from stationmaster.settings import WorkerSettings
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous, until

SECONDS = 0.01
HOUR = 3600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(Database(f"sqlite:///{tmp_path}/store.db"))
    yield opened
    opened.close()


@asynccontextmanager
async def world_of(store: Store, tmp_path: Path) -> AsyncIterator[World]:
    def nothing(*_args: Any) -> Any:
        raise AssertionError("periodic work of these tests needs no machine and no recipe")

    world = World(
        store=store,
        providers={},
        connect=nothing,
        find_recipe=nothing,
        secrets=nothing,
        home=tmp_path,
        trackside=tmp_path / "trackside.pyz",
    )
    try:
        yield world
    finally:
        await world.close()


@asynccontextmanager
async def repeated(*works: tuple[PeriodicWork, str], world: World) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(repeat(work, world, owner=owner)) for work, owner in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def counting(runs: list[str], name: str) -> Any:
    async def run(_world: World) -> None:
        runs.append(name)

    return run


CLEANUPS = {"access_cleanup", "dataset_cleanup"}


def names(*, low_credit: float = 0.0, registers: bool = False) -> set[str]:
    table = periodic_table(
        WorkerSettings(), low_credit=from_dollars(low_credit) if low_credit else ZERO, registers=registers
    )
    return {work.name for work in table}


def test_rows_that_the_settings_turn_off_are_not_in_the_table() -> None:
    always = {"sweep", "unknown_states", "not_served", "provider_bills", "spending", "series_upkeep"} | CLEANUPS
    assert names() == always
    assert names(low_credit=5.0) == always | {"credit"}
    assert names(registers=True) == always | {"register"}


@asynchronous
async def test_shared_work_is_run_by_one_worker_until_it_is_due_again(store: Store, tmp_path: Path) -> None:
    runs: list[str] = []
    rare = [
        PeriodicWork(name="sweep", run=counting(runs, owner), interval_seconds=HOUR, lease_seconds=60.0)
        for owner in ("one", "two")
    ]
    often = PeriodicWork(name="often", run=counting(runs, "often"), interval_seconds=SECONDS)
    async with world_of(store, tmp_path) as world:
        async with repeated((rare[0], "one"), (rare[1], "two"), (often, "one"), world=world):
            await until(lambda: runs.count("often") >= 3 and len(set(runs)) == 2, what="one of two has run it")
        async with repeated((rare[0], "one"), (rare[1], "two"), (often, "one"), world=world):
            before = runs.count("often")
            await until(lambda: runs.count("often") >= before + 3, what="time has passed")
    assert len([owner for owner in runs if owner != "often"]) == 1, "an hour has not passed, so nobody ran it again"


@asynchronous
async def test_work_that_fails_is_tried_again_and_stops_no_other(store: Store, tmp_path: Path) -> None:
    runs: list[str] = []

    async def failing(_world: World) -> None:
        runs.append("failing")
        raise RuntimeError("an answer that no rule foresaw")

    works = (
        PeriodicWork(name="failing", run=failing, interval_seconds=SECONDS),
        PeriodicWork(name="well", run=counting(runs, "well"), interval_seconds=SECONDS),
    )
    async with world_of(store, tmp_path) as world, repeated(*((work, "one") for work in works), world=world):
        await until(lambda: min(runs.count("failing"), runs.count("well")) >= 2, what="both ran twice")


@asynchronous
async def test_work_that_is_not_needed_claims_nothing(store: Store, tmp_path: Path) -> None:
    runs: list[str] = []
    asked: list[bool] = []

    async def is_needed(_world: World) -> bool:
        asked.append(len(asked) >= 2)
        return asked[-1]

    work = PeriodicWork(
        name="register",
        run=counting(runs, "register"),
        interval_seconds=SECONDS,
        lease_seconds=60.0,
        is_needed=is_needed,
    )
    async with world_of(store, tmp_path) as world, repeated((work, "one"), world=world):
        await until(lambda: bool(asked), what="it was asked whether it is needed")
        await until(lambda: bool(runs), what="it ran once it was needed")
    assert asked[:3] == [False, False, True]
