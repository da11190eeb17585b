"""An analysis is due once per attempt that trained, never fails a job, and never holds up what it runs beside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any, cast

import pytest

from stationmaster.control.flow.batching import BatchedQuery
from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.results.analysing import analysed, analysed_meanwhile, analysis_is_due
from stationmaster.event_sentences import sentence
from stationmaster.model import Ending, Job, Watching
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import job

TRAINED = job(watching=Watching(trained=True))


class OneVisit:
    """What an analysis uses of a visit."""

    def __init__(self, **monitoring: Any) -> None:
        self.monitoring = MonitoringSettings(**monitoring)


class BrokenWorld:
    """A world whose store fails when the analysis first reads it."""

    def __init__(self, read: Callable[[], object]) -> None:
        self.analysis_thread = ThreadPoolExecutor(1)
        self.lost_machines = BatchedQuery(none_lost)
        self._read = read

    @property
    def store(self) -> object:
        return self._read()


async def none_lost(_all: frozenset[None]) -> dict[None, tuple[int, float]]:
    return {None: (0, 0.0)}


def visit(**monitoring: Any) -> Visit:
    return cast("Visit", OneVisit(**monitoring))


@pytest.fixture
def release() -> Iterator[Event]:
    """Lets a slow analysis go on, at the latest when the test is over."""
    event = Event()
    yield event
    event.set()


def broken() -> object:
    raise RuntimeError("a bug")


async def inventory() -> Write:
    return wait(replace(TRAINED, version=7), 0.0)


@pytest.mark.parametrize(
    ("found", "settings", "is_due"),
    [
        (TRAINED, {}, True),
        (job(), {}, False),
        (job(watching=Watching(trained=True), ending=Ending(analysed=True)), {}, False),
        (TRAINED, {"analyze_on_complete": False}, False),
    ],
)
def test_an_attempt_that_trained_is_analysed_once(found: Job, settings: dict[str, Any], is_due: bool) -> None:
    assert analysis_is_due(found, visit(**settings)) is is_due


def test_a_bug_in_the_analysis_is_recorded_and_the_job_goes_on() -> None:
    world = cast("World", BrokenWorld(broken))
    for write in (
        asyncio.run(analysed(TRAINED, visit(), world)),
        asyncio.run(analysed_meanwhile(inventory(), TRAINED, visit(), world)),
    ):
        assert write.analysis is None
        assert write.job.ending.analysed, "it is not tried again"
        assert write.due_in == 0.0
        (event,) = write.events
        assert event.kind == "analysis_failed"
        assert sentence(event.kind, event.payload) == "Could not analyse the training: RuntimeError: a bug."


def test_a_slow_analysis_is_left_for_when_the_machine_is_gone(release: Event) -> None:
    world = cast("World", BrokenWorld(lambda: release.wait(60)))
    write = asyncio.run(analysed_meanwhile(inventory(), TRAINED, visit(), world, late_seconds=0.05))
    assert write.job.version == 7, "the inventory is there"
    assert not write.job.ending.analysed
    assert write.events == ()


def test_what_it_runs_beside_may_fail_as_without_it(release: Event) -> None:
    async def fails() -> Write:
        raise ConnectionError("no answer")

    world = cast("World", BrokenWorld(lambda: release.wait(60)))
    with pytest.raises(ConnectionError):
        asyncio.run(analysed_meanwhile(fails(), TRAINED, visit(), world))
