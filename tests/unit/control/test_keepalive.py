"""Visits during a long action: none right after a status, and one that is under way ends on its own."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from stationmaster.control.machine.keepalive import keepalive
from stationmaster.errors import CommandFailed
from stationmaster.remote.host import Host
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import job, visit


class SlowMachine:
    """Answers a visit when it is told to."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.visits: list[str] = []

    async def visit(self, _seconds: float) -> None:
        self.visits.append("asked")
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.visits[-1] = "interrupted"
            raise
        self.visits[-1] = "answered"


@asynchronous
async def test_a_visit_that_is_under_way_when_the_action_ends_is_not_interrupted() -> None:
    """The trackside that answers it would end with it, and the next action would have to start another."""
    machine = SlowMachine()
    async with keepalive(cast(Host, machine), visit(job())):
        asyncio.get_running_loop().call_later(0.05, machine.answer.set)
    assert machine.visits == ["answered"]


@asynchronous
async def test_a_visit_that_is_never_answered_keeps_no_action() -> None:
    machine = SlowMachine()
    async with keepalive(cast(Host, machine), visit(job())):
        pass
    assert machine.visits == ["interrupted"]


@asynchronous
async def test_an_action_that_failed_waits_for_no_visit() -> None:
    machine = SlowMachine()
    with pytest.raises(CommandFailed):
        await _failing_beside(machine)
    assert machine.visits == ["interrupted"]


async def _failing_beside(machine: SlowMachine) -> None:
    async with keepalive(cast(Host, machine), visit(job())):
        await asyncio.sleep(0)
        machine.answer.set()  # it would be answered if it were waited for
        raise CommandFailed("the disk is full")


@pytest.mark.parametrize(("after_status", "visits"), [(False, ["answered"]), (True, [])])
@asynchronous
async def test_an_action_begins_with_a_visit_unless_it_follows_a_status(after_status: bool, visits: list[str]) -> None:
    machine = SlowMachine()
    machine.answer.set()
    async with keepalive(cast(Host, machine), visit(job()), after_status=after_status):
        await asyncio.sleep(0)
    assert machine.visits == visits
