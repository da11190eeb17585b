"""A retry that follows the analysis: exactly the recommended parameters differ, and the job says which."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Report, Severity
from stationmaster.errors import NotFound, UserError
from stationmaster.event_sentences import sentence
from stationmaster.model import Desired, JobSpec, MachineWish
from stationmaster.station.proposals import Proposals, RetryChanges, RetryRequest
from tests.support.jobs.advice import advice, report_with
from tests.support.jobs.local_world import LocalWorld

REPORT = report_with(
    advice(Lever.LEARNING_RATE, 0.005, title="The learning rate is too high"),
    advice(Lever.MACHINE_SHM, 8),
    advice(Lever.BATCH_SIZE, 16, severity=Severity.INFO),
)


def proposals_with(world: LocalWorld, report: Report) -> Proposals:
    """The station's proposals once this is the stored analysis of the job `done`."""
    assert world.store.analyses.put("done", 1, report)
    return world.station.proposals


def submitted(world: LocalWorld, report: Report, request: RetryRequest) -> JobSpec:
    """The job as it is stored, which is then cancelled and removed."""
    proposals = proposals_with(world, report)
    job = proposals.submit(proposals.propose(request).id).job
    world.station.jobs.desire(job.id, Desired.CANCEL)
    world.work_until_ended(job.id)
    world.station.jobs.remove(job.id)
    return job.spec


def following(*only: str, job: str = "done", resume: bool = False) -> RetryRequest:
    return RetryRequest(job=job, apply_recommendations=True, only=only, resume=resume)


def differing(spec: JobSpec, world: LocalWorld) -> dict[str, object]:
    old = world.station.jobs.view("done").job.spec.parameters
    assert spec.parameters.keys() == old.keys()
    return {name: value for name, value in spec.parameters.items() if value != old[name]}


def test_exactly_the_recommended_parameter_differs_and_the_job_says_so(finished: LocalWorld) -> None:
    proposals = proposals_with(finished, REPORT)
    proposal = proposals.propose(RetryRequest(job="done", id="again", apply_recommendations=True))
    job = proposals.submit(proposal.id).job
    assert differing(job.spec, finished) == {"learning_rate": 0.005}
    (applied,) = job.spec.applied
    assert (applied.change, applied.config_path) == ("learning_rate: 0.01 -> 0.005", "parameters.learning_rate")
    assert (applied.number, applied.severity, applied.title) == (1, "critical", "The learning rate is too high")
    assert finished.station.jobs.view("again").job.spec.applied == (applied,)
    (event, *_) = finished.station.events.of_job("again")
    assert sentence(event.kind, event.payload).endswith("Changed after job done: learning_rate: 0.01 -> 0.005.")
    finished.station.jobs.desire("again", Desired.CANCEL)
    finished.work_until_ended("again")
    plain = finished.station.proposals.propose(RetryRequest(job="again", id="once-more"))
    repeated = finished.station.proposals.submit(plain.id).job.spec
    assert (repeated.parameters, repeated.retry_of, repeated.applied) == (job.spec.parameters, "again", ())
    finished.station.jobs.desire("once-more", Desired.CANCEL)
    finished.work_until_ended("once-more")


def test_the_terms_show_what_is_applied_and_what_is_not(finished: LocalWorld) -> None:
    proposals = proposals_with(finished, REPORT)
    checked = proposals.check(following())
    proposal = proposals.propose(following())
    assert proposals.find(proposal.id) == proposal
    assert (proposal.terms.applied, proposal.terms.skipped) == (checked.applied, checked.skipped)
    assert checked.parameters["learning_rate"] == 0.005
    assert [(one.number, one.why) for one in checked.skipped] == [
        (2, "tiny-lora@1 has no parameter for it: set machine.shm_gb to 8"),
        (3, "it is only info: --only 3 applies it"),
    ]
    proposals.withdraw(proposal.id)


def test_advice_that_a_person_overrules_is_not_called_followed(finished: LocalWorld) -> None:
    overruling = replace(following(), changes=RetryChanges(parameters={"learning_rate": 0.007}))
    terms = proposals_with(finished, REPORT).check(overruling)
    assert (terms.parameters["learning_rate"], terms.applied) == (0.007, ())
    assert terms.skipped[-1].why == "learning_rate was set to 0.007 instead"
    agreeing = replace(following(), changes=RetryChanges(parameters={"learning_rate": 0.005, "rank": 4}))
    terms = proposals_with(finished, REPORT).check(agreeing)
    assert ([one.what for one in terms.applied], terms.parameters["rank"]) == (["learning_rate"], 4)


def test_only_what_is_named_is_applied_info_too(finished: LocalWorld) -> None:
    spec = submitted(finished, REPORT, following("3"))
    assert differing(spec, finished) == {"batch_size": 16}


def test_a_resumed_job_is_warned_of_a_spoilt_checkpoint(finished: LocalWorld) -> None:
    notes = proposals_with(finished, REPORT).check(following(resume=True)).notes
    assert [note for note in notes if "spoilt" in note]
    assert not [note for note in proposals_with(finished, REPORT).check(following()).notes if "spoilt" in note]


def test_what_is_asked_of_the_machine_stays_with_the_job(finished: LocalWorld) -> None:
    spec = submitted(finished, report_with(advice(Lever.MACHINE_DISK_SIZE, 2)), following())
    assert (spec.machine, spec.quote.disk_gib) == (MachineWish(disk_gib=2.0), 2.0)
    assert differing(spec, finished) == {}


def test_nothing_that_can_be_applied_is_an_error_with_the_reasons(finished: LocalWorld) -> None:
    report = report_with(advice(Lever.MACHINE_SHM, 8), advice(Lever.HF_TOKEN, None))
    with pytest.raises(UserError, match="no recommendation for job done can be applied") as raised:
        proposals_with(finished, report).propose(following())
    assert raised.value.hint == (
        "1. machine.shm_gb: tiny-lora@1 has no parameter for it: set machine.shm_gb to 8; "
        "2. credentials.hf_token: tiny-lora@1 has no parameter for it: change credentials.hf_token"
    )


def test_an_unknown_name_is_refused_with_those_that_exist(finished: LocalWorld) -> None:
    with pytest.raises(UserError, match="recommends nothing for 'ema'") as raised:
        proposals_with(finished, REPORT).check(following("ema"))
    assert raised.value.hint == "--only takes 1 (learning_rate), 2 (machine.shm_gb), 3 (batch_size)"


def test_names_without_the_wish_to_apply_are_refused(finished: LocalWorld) -> None:
    with pytest.raises(UserError, match="only"):
        finished.station.proposals.check(RetryRequest(job="done", only=("1",)))


def test_a_job_that_has_not_trained_has_nothing_to_apply(finished: LocalWorld) -> None:
    with pytest.raises(NotFound):
        finished.station.proposals.check(following(job="nothing"))
