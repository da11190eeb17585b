"""Proposals: what was shown is what is submitted, once, and nothing is looked at a second time."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.errors import DiskFull, NoOfferFits, NotFound, UserError
from stationmaster.model import Desired, MachineWish, State
from stationmaster.money import from_dollars
from stationmaster.station.proposals import EstimateRequest, RetryChanges, RetryRequest
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.recipe_texts import small, write_recipe
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.submitting import submit
from tests.support.trusted_settings import write_trusted


def archive_of(world: LocalWorld, job_id: str) -> Path:
    """The packed dataset: a path of the computer that stores it, which no answer over HTTP tells."""
    return Path(world.store.jobs.get(job_id).spec.dataset.archive)


@every_station
def test_what_was_proposed_is_what_is_submitted(world: LocalWorld, pictures: Path) -> None:
    proposals = world.station.proposals
    proposal = proposals.propose(world.request(pictures, id="mine", name="cats", trigger="ohwx"))
    assert proposals.find(proposal.id) == proposal
    assert world.station.jobs.listed(with_ended=True) == []
    job = proposals.submit(proposal.id).job
    terms = proposal.terms
    assert (job.id, job.spec.name, job.spec.recipe) == (proposal.job_id, terms.name, terms.recipe)
    assert (job.spec.quote, job.spec.max_seconds, job.spec.max_spend) == (
        terms.quote,
        terms.max_seconds,
        terms.max_spend,
    )
    assert {name: job.spec.parameters[name] for name in terms.parameters} == terms.parameters
    assert job.state is State.QUEUED


def test_a_disk_that_is_too_small_is_a_note_until_the_job_is_wanted(untouched: LocalWorld, pictures: Path) -> None:
    request = untouched.request(pictures, machine=MachineWish(disk_gib=900_000.0))
    (note,) = (note for note in untouched.station.proposals.check(request).notes if "disk" in note)
    assert "the training needs 900000 GiB: it cannot start here" in note
    estimated = untouched.station.proposals.estimate(
        EstimateRequest(recipe="tiny-lora@1", images=10, machine=MachineWish(disk_gib=900_000.0))
    )
    assert any("it cannot start here" in one for one in estimated.notes)
    with pytest.raises(DiskFull, match="the training needs 900000 GiB"):
        untouched.station.proposals.propose(request)


@every_station
def test_submitting_twice_makes_one_job(world: LocalWorld, pictures: Path) -> None:
    proposal = world.station.proposals.propose(world.request(pictures))
    first, again = (world.station.proposals.submit(proposal.id) for _ in range(2))
    assert (first.created, again.created, again.job.id) == (True, False, first.job.id)
    assert len(world.station.jobs.listed(with_ended=True)) == 1


def test_nothing_of_the_dataset_is_read_after_the_proposal(world: LocalWorld, pictures: Path, tmp_path: Path) -> None:
    """A person may well tidy up between the question and the yes; what was shown is trained on all the same."""
    moved = tmp_path / "moved"
    shutil.copytree(pictures, moved)
    proposal = world.station.proposals.propose(world.request(moved, id="mine"))
    shutil.rmtree(moved)
    job = world.station.proposals.submit(proposal.id).job
    world.work_until_ended(job.id)
    assert world.station.jobs.view(job.id).shown == "COMPLETED"


@every_station
def test_a_withdrawn_proposal_is_gone_with_its_dataset(world: LocalWorld, pictures: Path) -> None:
    proposal = world.station.proposals.propose(world.request(pictures))
    packed = world.folder / "home" / "datasets"
    assert list(packed.glob("*.tar"))
    world.station.proposals.withdraw(proposal.id)
    assert list(packed.glob("*.tar")) == []
    for ask in (world.station.proposals.find, world.station.proposals.submit, world.station.proposals.withdraw):
        with pytest.raises(NotFound, match="no proposal"):
            ask(proposal.id)


def test_a_proposal_keeps_its_dataset_while_another_job_with_it_is_removed(world: LocalWorld, pictures: Path) -> None:
    other = submit(world.station, world.request(pictures, id="other")).job
    proposal = world.station.proposals.propose(world.request(pictures, id="mine"))
    world.station.jobs.desire("other", Desired.CANCEL)
    world.work_until_ended("other")
    world.station.jobs.remove("other")
    job = world.station.proposals.submit(proposal.id).job
    assert job.spec.dataset == other.spec.dataset
    assert archive_of(world, job.id).is_file()


def test_a_withdrawn_proposal_leaves_the_dataset_of_a_job_alone(world: LocalWorld, pictures: Path) -> None:
    job = submit(world.station, world.request(pictures, id="mine")).job
    proposal = world.station.proposals.propose(world.request(pictures, id="other"))
    world.station.proposals.withdraw(proposal.id)
    assert archive_of(world, job.id).is_file()


@pytest.mark.parametrize("forged", ["", "x", "%", "../../etc"])
def test_a_proposal_that_never_was_is_refused(untouched: LocalWorld, forged: str) -> None:
    with pytest.raises(NotFound, match="no proposal"):
        untouched.station.proposals.submit(forged)
    assert untouched.station.jobs.listed(with_ended=True) == []


def test_the_job_of_a_proposal_that_was_removed_does_not_come_back(world: LocalWorld, pictures: Path) -> None:
    proposal = world.station.proposals.propose(world.request(pictures, id="mine"))
    world.station.proposals.submit(proposal.id)
    world.station.jobs.desire("mine", Desired.CANCEL)
    world.work_until_ended("mine")
    world.station.jobs.remove("mine")
    with pytest.raises(NotFound, match="no proposal"):
        world.station.proposals.submit(proposal.id)
    assert world.station.jobs.listed(with_ended=True) == []


def test_a_retry_is_proposed_and_submitted_the_same_way(finished: LocalWorld) -> None:
    proposals = finished.station.proposals
    request = RetryRequest(job="done", id="again", resume=True)
    assert proposals.check(request).quote
    proposal = proposals.propose(request)
    job = proposals.submit(proposal.id).job
    old = finished.station.jobs.view("done").job.spec
    assert (job.id, job.spec.retry_of, job.spec.dataset) == ("again", "done", old.dataset)
    assert (job.spec.quote, job.spec.resume_step) == (proposal.terms.quote, 20)
    finished.station.jobs.desire("again", Desired.CANCEL)
    finished.work_until_ended("again")
    finished.station.jobs.remove("again")


def test_an_estimate_needs_no_dataset_and_writes_nothing(untouched: LocalWorld) -> None:
    found = untouched.station.proposals.estimate(EstimateRequest(recipe="tiny-lora@1", images=12))
    assert found.provider == "loopback"
    assert found.quote.hours_low <= found.quote.hours_expected <= found.quote.hours_high
    assert found.quote.memory_expected_gib is None
    assert untouched.station.jobs.listed(with_ended=True) == []


def test_an_estimate_for_one_gpu_says_whether_the_training_fits_it(untouched: LocalWorld) -> None:
    request = EstimateRequest(recipe="sdxl-lora@2", images=12, gpu="RTX 5080", parameters={"batch_size": 30})
    found = untouched.station.proposals.estimate(request)
    assert (found.quote.gpu, found.quote.gpu_gib, found.is_offered) == ("RTX 5080", 16, False)
    assert found.quote.memory_low_gib is not None
    assert found.quote.memory_low_gib > 16
    assert "it will not fit" in found.notes[0]


@pytest.fixture
def gpu_recipe(tmp_path: Path) -> str:
    """Of the world that is opened next: it needs a GPU, which this computer does not offer, but hardly any disk."""
    needs = "needs: {gpus: 1, vram_gib: 8, disk_gib: 0.1}\ntime: {"
    write_recipe(tmp_path / "recipes", "small", small(("time: {", needs)))
    write_trusted(tmp_path / "stationmaster.toml", f'recipes = ["{tmp_path / "recipes"}"]\n', home=tmp_path / "home")
    return "small@1"


def test_that_no_machine_fits_is_an_error_of_its_own(gpu_recipe: str, world: LocalWorld) -> None:
    with pytest.raises(NoOfferFits, match=f"no offer of loopback fits {gpu_recipe}"):
        world.station.proposals.estimate(EstimateRequest(recipe=gpu_recipe, images=12))


def test_an_estimate_says_the_limits_that_the_job_would_have(untouched: LocalWorld, pictures: Path) -> None:
    found = untouched.station.proposals.estimate(EstimateRequest(recipe="tiny-lora@1", images=6))
    terms = untouched.station.proposals.check(untouched.request(pictures))
    assert found.max_seconds == terms.max_seconds
    asked = EstimateRequest(recipe="tiny-lora@1", images=6, max_hours=2.5, max_spend=from_dollars(3))
    limited = untouched.station.proposals.estimate(asked)
    assert (limited.max_seconds, limited.max_spend) == (9000.0, from_dollars(3))


def test_a_machine_with_more_disk_is_asked_for_and_stays_with_the_job(world: LocalWorld, pictures: Path) -> None:
    request = replace(world.request(pictures, id="roomy"), machine=MachineWish(disk_gib=1.5))
    proposal = world.station.proposals.propose(request)
    assert proposal.terms.quote.disk_gib == 1.5
    assert world.station.proposals.submit(proposal.id).job.spec.machine == MachineWish(disk_gib=1.5)
    asked = EstimateRequest(recipe="tiny-lora@1", images=6, machine=MachineWish(disk_gib=1.5))
    assert world.station.proposals.estimate(asked).quote.disk_gib == 1.5


def test_a_person_changes_what_is_run_again(finished: LocalWorld) -> None:
    changes = RetryChanges(
        name="other cats", parameters={"rank": "4"}, max_hours=1.5, machine=MachineWish(disk_gib=2.0)
    )
    proposals = finished.station.proposals
    proposal = proposals.propose(RetryRequest(job="done", id="changed", changes=changes))
    assert (proposal.terms.name, proposal.terms.parameters["rank"]) == ("other cats", 4)
    assert (proposal.terms.max_seconds, proposal.terms.quote.disk_gib) == (5400.0, 2.0)
    spec = proposals.submit(proposal.id).job.spec
    assert (spec.name, spec.parameters["rank"], spec.retry_of) == ("other cats", 4, "done")
    assert (spec.max_seconds, spec.machine.disk_gib) == (5400.0, 2.0)
    with pytest.raises(UserError, match="parameter rank"):
        proposals.check(RetryRequest(job="done", changes=RetryChanges(parameters={"rank": 0})))
    with pytest.raises(UserError, match="no parameter `rnak`"):
        proposals.check(RetryRequest(job="done", changes=RetryChanges(parameters={"rnak": 4})))
