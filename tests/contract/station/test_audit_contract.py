"""The audit log, as every face may rely on it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stationmaster.station.audit import AuditEntry
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station


@pytest.fixture
def world(world: LocalWorld) -> LocalWorld:
    """A station where ann has stopped five jobs, and somebody unknown was refused once."""
    doorkeeper = LocalDoorkeeper(world.store)
    for number in range(5):
        doorkeeper.record(entry("ann", f"job{number}", 200))
    doorkeeper.record(entry(None, None, 401))
    return world


def entry(user: str | None, subject: str | None, status: int) -> AuditEntry:
    return AuditEntry(
        at=0.0,
        user=user,
        token=None if user is None else "t1",
        action="POST /api/jobs/{job}/stop",
        subject=subject,
        status=status,
        address="127.0.0.1",
    )


def of_ann(entries: Sequence[AuditEntry]) -> list[str | None]:
    return [one.subject for one in entries if one.user == "ann"]


@every_station
def test_the_newest_entries_come_first_with_all_that_is_known(world: LocalWorld) -> None:
    refused, last, *_ = [one for one in world.station.audit.entries() if one.action.endswith("/stop")]
    assert (refused.user, refused.token, refused.subject, refused.status) == (None, None, None, 401)
    assert (last.user, last.token, last.subject, last.status) == ("ann", "t1", "job4", 200)
    assert (last.action, last.address) == ("POST /api/jobs/{job}/stop", "127.0.0.1")
    assert world.station.now() - 60 < last.at <= world.station.now()


@every_station
def test_older_entries_follow_page_by_page(world: LocalWorld) -> None:
    audit = world.station.audit
    first = audit.entries(limit=2, user="ann")
    assert of_ann(first) == ["job4", "job3"]
    assert of_ann(audit.entries(limit=2, user="ann", before=first[-1].id)) == ["job2", "job1"]
    assert of_ann(audit.entries(user="ann")) == ["job4", "job3", "job2", "job1", "job0"]
    assert of_ann(audit.entries(limit=5000)) == ["job4", "job3", "job2", "job1", "job0"]


def test_nobody_has_done_nothing(world: LocalWorld) -> None:
    assert world.station.audit.entries(user="nobody") == []
