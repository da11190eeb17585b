"""Requests that are submitted at once: with a key, one request makes one job, whatever happens in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from stationmaster.errors import KeyReused, NotFound, UserError
from stationmaster.model import Desired, State
from stationmaster.money import from_dollars
from stationmaster.station.local.proposing.keyed import claim_job_id
from stationmaster.station.proposals import Accepted, TrainRequest
from stationmaster.store.engine import Database
from stationmaster.store.submissions import Submissions
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station

MONTH_SECONDS = 31 * 24 * 3600.0


def number_of_jobs(world: LocalWorld) -> int:
    return len(world.store.jobs.listed(with_ended=True))


@every_station
def test_a_request_is_checked_and_queued_at_once(world: LocalWorld, pictures: Path) -> None:
    request = world.request(pictures, name="cats", max_price=from_dollars("0.4"), max_hours=2.5)
    found = world.station.proposals.enqueue(request)
    assert found.created
    assert (found.job.state, found.job.spec.name, found.job.spec.provider) == (State.QUEUED, "cats", "loopback")
    assert (found.job.spec.max_price_per_hour, found.job.spec.max_seconds) == (400_000, 9000)
    assert found.job.spec.quote.hours_expected > 0


def test_the_answer_says_that_nobody_runs_the_job(tmp_path: Path, pictures: Path) -> None:
    with LocalWorld(tmp_path) as world:
        assert [note for note in world.station.proposals.enqueue(world.request(pictures)).notes if "no worker" in note]


@every_station
def test_a_repeated_request_with_its_key_is_answered_with_the_same_job(world: LocalWorld, pictures: Path) -> None:
    proposals, request = world.station.proposals, world.request(pictures)
    first, again = (proposals.enqueue(request, key="order-1") for _ in range(2))
    assert (first.created, again.created, again.job) == (True, False, first.job)
    other = proposals.enqueue(request, key="order-2")
    assert other.created
    assert number_of_jobs(world) == 2


@every_station
def test_a_key_belongs_to_its_request(world: LocalWorld, pictures: Path) -> None:
    world.station.proposals.enqueue(world.request(pictures), key="order-1")
    for changed in (world.request(pictures, name="dogs"), world.request(pictures, parameters={"steps": 21})):
        with pytest.raises(KeyReused, match="another request"):
            world.station.proposals.enqueue(changed, key="order-1")
    assert number_of_jobs(world) == 1


def test_the_order_of_the_names_does_not_make_another_request(world: LocalWorld, pictures: Path) -> None:
    request = world.request(pictures)
    turned = replace(request, parameters=dict(reversed(list(request.parameters.items()))))
    first = world.station.proposals.enqueue(request, key="order-1")
    assert world.station.proposals.enqueue(turned, key="order-1").job.id == first.job.id


@every_station
def test_twins_make_one_job(world: LocalWorld, pictures: Path) -> None:
    request, together = world.request(pictures), threading.Barrier(4)
    world.station.proposals.enqueue(request, key="order-0")  # a server has the dataset from now on

    def enqueue() -> Accepted:
        together.wait()
        return world.station.proposals.enqueue(request, key="order-1")

    with ThreadPoolExecutor(4) as pool:
        found = [each.result() for each in [pool.submit(enqueue) for _ in range(4)]]
    assert len({each.job.id for each in found}) == 1
    assert sum(each.created for each in found) == 1
    assert number_of_jobs(world) == 2


def _killed_after_the_key(world: LocalWorld, request: TrainRequest) -> None:
    """Nothing more was written: the next try finds the key."""


def _killed_after_the_proposal(world: LocalWorld, request: TrainRequest) -> None:
    world.local.proposals.propose(replace(request, id="chosen"))


def _killed_after_the_job(world: LocalWorld, request: TrainRequest) -> None:
    proposal = world.local.proposals.propose(replace(request, id="chosen"))
    world.local.proposals.submit(proposal.id)


@pytest.mark.parametrize(
    ("killed", "is_new"),
    [(_killed_after_the_key, True), (_killed_after_the_proposal, True), (_killed_after_the_job, False)],
)
def test_a_request_whose_server_was_killed_is_neither_lost_nor_doubled(
    tmp_path: Path, pictures: Path, killed: Callable[[LocalWorld, TrainRequest], None], is_new: bool
) -> None:
    with LocalWorld(tmp_path) as world:
        request = world.request(pictures)
        claim_for(world, request, key="order-1", job_id="chosen")
        killed(world, request)
        found = world.station.proposals.enqueue(request, key="order-1")
        assert (found.job.id, found.created) == ("chosen", is_new)
        assert number_of_jobs(world) == 1


def claim_for(world: LocalWorld, request: TrainRequest, *, key: str, job_id: str) -> None:
    """Write the key as the first try does, before anything else."""
    assert claim_job_id(world.store, request, key=key, user="me", job_id=job_id) == job_id


def test_a_job_that_was_removed_does_not_come_back_with_its_key(world: LocalWorld, pictures: Path) -> None:
    request = world.request(pictures, id="mine")
    world.station.proposals.enqueue(request, key="order-1")
    world.station.jobs.desire("mine", Desired.CANCEL)
    world.work_until_ended("mine")
    world.station.jobs.remove("mine")
    with pytest.raises(NotFound, match="was removed"):
        world.station.proposals.enqueue(request, key="order-1")
    assert number_of_jobs(world) == 0


def test_a_key_is_forgotten_after_a_month(tmp_path: Path, pictures: Path) -> None:
    with LocalWorld(tmp_path) as world:
        world.station.proposals.enqueue(world.request(pictures), key="order-1")
        with closing(Database(world.settings.store_url, clock_offset=MONTH_SECONDS)) as later:
            hashed = sha256(b"order-1").hexdigest()
            claimed = Submissions(later).claim("me", hashed, body_sha256="another", job_id="new")
        assert (claimed.job_id, claimed.body_sha256, claimed.submitted_at) == ("new", "another", None)


def test_users_have_keys_of_their_own(tmp_path: Path, pictures: Path) -> None:
    with LocalWorld(tmp_path) as world:
        request = world.request(pictures)
        jobs = {
            world.station.proposals.enqueue(request, key="order-1", user=user).job.id for user in ("ann", "bob", "ann")
        }
        assert len(jobs) == 2


@pytest.mark.parametrize("key", ["", "x" * 201, "two words", "é", "a\n"])
def test_what_cannot_be_a_key_is_refused(tmp_path: Path, pictures: Path, key: str) -> None:
    with LocalWorld(tmp_path) as world:
        with pytest.raises(UserError, match="1 to 200"):
            world.station.proposals.enqueue(world.request(pictures), key=key)
        assert number_of_jobs(world) == 0
