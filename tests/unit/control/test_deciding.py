"""Where a decision is made: short ones at once, long ones in the thread for them."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from stationmaster.control.flow.deciding import decided
from stationmaster.control.flow.step import Handler, Step
from stationmaster.control.flow.world import World
from stationmaster.control.states.executing.dense_log import takes_long, thinned_news
from stationmaster.model import Job, State
from stationmaster.remote.base import Remote
from stationmaster.remote.status import LogPiece, Status
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import job


def _world(home: Path) -> World:
    return World(
        store=cast(Store, None),
        providers={},
        connect=lambda _access: cast(Remote, None),
        find_recipe=lambda _name: pytest.fail("no recipe is needed"),
        secrets=lambda _name: None,
        home=home,
        trackside=home,
    )


async def _unused(*_args: Any) -> Any:
    raise AssertionError("nothing is observed or performed here")


@asynchronous
async def test_only_what_takes_long_is_decided_beside_the_event_loop(tmp_path: Path) -> None:
    handler: Handler[bool, str] = Handler(
        observe=_unused,
        decide=lambda _seen, _policy: Step(then=threading.current_thread().name),
        perform=_unused,
        takes_long=lambda seen: seen,
    )
    world = _world(tmp_path)
    try:
        short, long = await decided(handler, False, world), await decided(handler, True, world)
    finally:
        await world.close()
    assert short.then == threading.current_thread().name
    assert long.then is not None
    assert long.then.startswith("reading")


def _status(data: bytes) -> Status:
    piece = LogPiece(stream="0.1", inode=1, start=0, end=len(data), data=data)
    return Status(wall=1.0, monotonic=1.0, boot_id="b", started=True, log=(piece,))


def test_a_status_takes_long_by_its_text_and_by_the_line_that_it_continues() -> None:
    training: Job = job(state=State.EXECUTING)
    assert not takes_long(training, None)
    assert not takes_long(training, _status(b"\rsteps: 5%|#  | 5/100 [00:10<03:10, 2.00s/it]"))
    assert takes_long(training, _status(b"y\n" * 2_000))
    unfinished = replace(training, watching=replace(training.watching, reader={"pending": "x" * 16_000}))
    assert takes_long(unfinished, _status(b"x"))


def test_that_parts_of_a_log_are_not_read_is_told_once() -> None:
    training: Job = job(state=State.EXECUTING)
    assert thinned_news(training, is_thinned=False).events == ()
    told = thinned_news(training, is_thinned=True)
    assert [event.kind for event in told.events] == ["log_thinned"]
    assert thinned_news(told.job, is_thinned=True).events == ()
