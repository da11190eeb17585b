"""Following a stream: nothing is lost or told twice, and a slow store makes writes larger instead of later."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from stationmaster.control.flow.world import Visit, World
from stationmaster.control.states.executing.live_stream import follow
from stationmaster.errors import Unreachable
from stationmaster.model import Alert, Job, LogChunk, Progress, State
from stationmaster.remote.base import Completed, Remote
from stationmaster.remote.status import Status
from stationmaster.series.blocks import Block, block_of
from stationmaster.series.table import table_of
from stationmaster.store.store import Store
from stationmaster.store.writes import Write, can_join
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import MACHINE, job, visit

STATUSES = 100


class Talkative:
    """A machine that says everything at once and then drops the line."""

    def __init__(self, statuses: int) -> None:
        self._statuses = statuses
        self.exit_status = 0
        self.stderr = b""

    @asynccontextmanager
    async def stream(self, _argv: object, *, timeout_idle: float | None = None) -> AsyncIterator[Talkative]:
        yield self

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for number in range(self._statuses):
            yield json.dumps(_status(number)).encode() + b"\n"
        raise Unreachable("the line is dead")

    async def run(self, _argv: object, **_options: object) -> Completed:
        return Completed(exit_status=0)

    async def close(self) -> None:
        """Nothing is held open."""


def _status(number: int) -> dict[str, Any]:
    piece = {"stream": "0.1", "inode": 1, "start": number, "end": number + 1, "data": base64.b64encode(b"x").decode()}
    return {"wall": 1.0, "monotonic": 1.0, "started": True, "log": [piece]}


def _rows(number: int) -> Block:
    return block_of(table_of("RunInfo", {"id": [number], "key": ["k"], "value": ["v"]}), attempt=1)


async def read(seen: Visit, status: Status) -> tuple[Write, bool]:
    """What each status says, and that it is to be followed further."""
    (piece,) = status.log
    chunk = LogChunk(attempt=1, stream=piece.stream, start=piece.start, end=piece.end, data=piece.data)
    job, rows = replace(seen.job, progress=Progress(step=piece.end)), (_rows(piece.start),)
    return Write(job=job, due_in=1.0, logs=(chunk,), series=rows), True


class Records:
    """A store that takes its time: as long as it takes the machine to say a few things more."""

    def __init__(self) -> None:
        self.writes: list[Write] = []

    async def take(self, write: Write) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        self.writes.append(write)

    @property
    def places(self) -> list[int]:
        return [chunk.start for write in self.writes for chunk in write.logs]

    @property
    def rows(self) -> list[int]:
        return [block.first_id for write in self.writes for block in write.series]


async def followed(tmp_path: Path, judge: Any, *, statuses: int = STATUSES) -> tuple[Records, Write]:
    records = Records()
    world = World(
        store=cast(Store, None),  # not asked within the seconds that this takes
        providers={},
        connect=lambda _access: cast(Remote, Talkative(statuses)),
        find_recipe=lambda _name: pytest.fail("no recipe is needed"),
        secrets=lambda _name: None,
        home=tmp_path,
        trackside=tmp_path,
    )
    training: Job = replace(job(state=State.EXECUTING, machine=MACHINE), attempt=1)
    try:
        last = await follow(training, replace(visit(training), record=records.take), world, judge)
    finally:
        await world.close()
    return records, last


@asynchronous
async def test_everything_is_recorded_once_and_in_order_in_fewer_writes_than_statuses(tmp_path: Path) -> None:
    records, last = await followed(tmp_path, read)
    assert records.places == records.rows == list(range(STATUSES))
    assert len(records.writes) <= STATUSES // 2
    assert last.job.progress.step == STATUSES
    assert last.due_in == 0.0, "a dropped line leads back to asking at once"


@asynchronous
async def test_the_write_that_ends_the_following_brings_what_came_before_it(tmp_path: Path) -> None:
    async def until_ten(seen: Visit, status: Status) -> tuple[Write, bool]:
        write, _ = await read(seen, status)
        return write, status.log[0].end < 10

    records, last = await followed(tmp_path, until_ten)
    assert [*records.places, *(chunk.start for chunk in last.logs)] == list(range(10))
    assert last.due_in == 0.0


@asynchronous
async def test_an_alert_is_written_by_itself_so_that_its_end_cannot_overtake_it(tmp_path: Path) -> None:
    async def with_alerts(seen: Visit, status: Status) -> tuple[Write, bool]:
        write, goes_on = await read(seen, status)
        if status.log[0].end == 3:
            write = replace(write, alerts=(Alert(kind="stall", message="stands still", job_id="job"),))
        if status.log[0].end == 4:
            write = replace(write, cleared_alerts=("stall",))
        return write, goes_on

    records, _ = await followed(tmp_path, with_alerts, statuses=8)
    raised = next(write for write in records.writes if write.alerts)
    cleared = next(write for write in records.writes if write.cleared_alerts)
    assert records.writes.index(raised) < records.writes.index(cleared)
    assert not can_join(raised, cleared)
    assert records.places == list(range(8))
