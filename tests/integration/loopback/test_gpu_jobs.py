"""Jobs on the GPUs of this computer: one at a time on each, in their order, and none that cannot fit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import NoOfferFits, UserError
from stationmaster.event_sentences import sentence
from stationmaster.model import Job, MachineWish, Outcome
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.machines.gpu_tools import UUIDS, nvidia_gpu, write_nvidia_smi

ONE_GPU = MachineWish(gpus=1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    """A computer with one GPU."""
    tools = write_nvidia_smi(tmp_path / "tools", [nvidia_gpu()])
    with LocalWorld(tmp_path, PATH=f"{tools}:{os.environ['PATH']}") as world:
        yield world


def submit(world: LocalWorld, name: str, **fields: Any) -> Job:
    pictures = write_pictures(world.folder / "pictures")
    request = world.request(pictures, name=name, id=name, **{"machine": ONE_GPU, **fields})
    proposal = world.station.proposals.propose(request)
    return world.station.proposals.submit(proposal.id).job


def events(world: LocalWorld, job: Job, kind: str) -> list[dict[str, Any]]:
    return [dict(event.payload) for event in world.store.events.of_job(job.id) if event.kind == kind]


def test_jobs_take_turns_on_one_gpu_in_the_order_in_which_they_came(world: LocalWorld) -> None:
    jobs = [submit(world, name) for name in ("first", "second", "third")]
    for job in jobs:
        world.work_until_ended(job.id)
    ended = [world.store.jobs.get(job.id) for job in jobs]
    assert [job.outcome for job in ended] == [Outcome.COMPLETED] * 3
    starts = [world.store.rentals.of_job(job.id)[0] for job in jobs]
    for before, after in pairwise(starts):
        assert before.release_asked_at is not None
        assert after.held_at is not None
        assert before.release_asked_at <= after.held_at, "never two jobs on the GPU"
    assert all(rental.offer is not None and rental.offer.id == UUIDS[0] for rental in starts)
    told = [sentence("waiting_for_turn", each) for each in events(world, jobs[1], "waiting_for_turn")]
    assert "Waiting for its turn: this computer's GPUs are in use: RTX 4090 (number 0) by first." in told
    assert not events(world, jobs[0], "waiting_for_turn")


def test_a_training_sees_only_the_gpu_of_its_job(world: LocalWorld) -> None:
    write_nvidia_smi(world.folder / "tools", [nvidia_gpu(total=8192), nvidia_gpu(1)])
    job = submit(world, "second-card", machine=MachineWish(gpus=1, vram_gib=20))
    world.work_until(lambda: bool(events(world, job, "machine_checked")), what="a machine that was checked")
    (checked,) = events(world, job, "machine_checked")
    assert checked["gpus"] == ["NVIDIA GeForce RTX 4090"], "one of the two"
    (rental,) = world.store.rentals.of_job(job.id)
    assert rental.offer is not None
    assert rental.offer.id == UUIDS[1]


def test_what_cannot_fit_is_refused_with_the_numbers_and_with_what_helps_here(world: LocalWorld) -> None:
    with pytest.raises(NoOfferFits) as refused:
        submit(world, "large", machine=MachineWish(gpus=1, vram_gib=48))
    assert "RTX 4090: 24.0 GiB of GPU memory (44.5 needed)" in str(refused.value)
    assert refused.value.hint is not None
    assert "VASTAI" not in refused.value.hint
    assert "price" not in refused.value.hint


def test_more_gpus_than_a_recipe_can_use_are_refused(world: LocalWorld) -> None:
    with pytest.raises(UserError, match="trains on 1 GPU, so 2 would not make it faster"):
        submit(world, "two", machine=MachineWish(gpus=2))


def test_a_gpu_that_the_settings_keep_from_jobs_is_not_offered(tmp_path: Path) -> None:
    tools = write_nvidia_smi(tmp_path / "tools", [nvidia_gpu()])
    environ = {"PATH": f"{tools}:{os.environ['PATH']}", "STATIONMASTER_LOOPBACK__GPUS": json.dumps([])}
    with (
        LocalWorld(tmp_path, **environ) as world,
        pytest.raises(NoOfferFits, match="the settings keep this computer's GPUs"),
    ):
        submit(world, "mine")
