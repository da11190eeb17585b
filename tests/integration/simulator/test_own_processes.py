"""A machine that is gone has left no process behind, neither on this computer nor in asyncio's books."""

from __future__ import annotations

import asyncio
import os
import signal
from uuid import uuid4

from stationmaster.simulator.machines.marked_processes import MARK, MarkedProcesses
from tests.support.asynchronous_tests import asynchronous


async def start(processes: MarkedProcesses, marker: str, *command: str) -> asyncio.subprocess.Process:
    return await processes.start(*command, env={"PATH": os.environ["PATH"], MARK: marker})


@asynchronous
async def test_ending_all_waits_until_asyncio_knows_it() -> None:
    """It hears of an end through its loop; a simulator that closes first would leave an open transport."""
    marker = uuid4().hex
    processes = MarkedProcesses(marker)
    started = [await start(processes, marker, "sleep", "600") for _ in range(20)]
    await processes.end_all()
    assert {process.returncode for process in started} == {-signal.SIGKILL}


@asynchronous
async def test_one_that_is_being_started_meanwhile_ends_too() -> None:
    marker = uuid4().hex
    processes = MarkedProcesses(marker)
    ending = asyncio.create_task(processes.end_all())
    starting: list[asyncio.Task[asyncio.subprocess.Process]] = []
    while not ending.done() and len(starting) < 20:
        starting.append(asyncio.create_task(start(processes, marker, "sleep", "600")))
        await asyncio.sleep(0)
    await ending
    assert {(await each).returncode for each in starting} == {-signal.SIGKILL}
    assert await processes.find() == []


@asynchronous
async def test_one_that_hides_its_marker_ends_too() -> None:
    marker = uuid4().hex
    processes = MarkedProcesses(marker)
    hidden = await start(processes, marker, "env", "-i", "sleep", "600")
    await processes.end_all()
    assert hidden.returncode == -signal.SIGKILL
