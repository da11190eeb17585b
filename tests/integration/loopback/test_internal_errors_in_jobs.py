"""A training that can no longer be watched, by an error of ours, is ended as asked, and its model comes home."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.model import Desired, Outcome, Reason, State
from stationmaster.store.writes import Write
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.waiting import until

PARAMETERS = {"steps": 5000, "seconds_per_step": 0.02, "save_every": 20}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    with LocalWorld(tmp_path) as opened:
        opened.may_trip = True
        yield opened


def spoil(world: LocalWorld) -> None:
    """What the handler keeps for its next look becomes something that it cannot read, as by a mistake in newer code."""
    (lease,) = until(lambda: world.store.leases.claim("spoiler", limit=1, seconds=20))
    spoilt = replace(lease.job.watching, reader={})
    world.store.leases.settle(lease, Write(job=replace(lease.job, watching=spoilt)))


def test_it_is_stopped_its_model_fetched_and_its_machine_given_back(world: LocalWorld, tmp_path: Path) -> None:
    pictures = write_pictures(tmp_path / "pictures")
    submit(world.station, world.request(pictures, id="bad", parameters=PARAMETERS))
    world.work_until(lambda: bool(world.station.jobs.view("bad").checkpoints), what="a checkpoint on the machine")
    spoil(world)
    world.work_until(lambda: world.store.jobs.get("bad").setbacks.internal_errors >= 1, what="a trip")
    assert world.store.jobs.get("bad").state is State.EXECUTING
    world.station.jobs.desire("bad", Desired.STOP)
    world.work_until_ended("bad")

    ended = world.station.jobs.view("bad")
    assert (ended.job.outcome, ended.job.reason) == (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER)
    assert "Stationmaster itself failed in EXECUTING" in str(ended.job.explanation)
    (model,) = [one for one in ended.checkpoints if one.location == ended.job.model.address]
    assert Path(str(model.location)).is_file()
    assert world.store.rentals.not_gone() == []
    assert ended.alerts == ()
