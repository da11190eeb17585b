"""A job as JSON, and back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, get_args

import pytest

from stationmaster.lifecycle import shown
from stationmaster.model import (
    Alert,
    AppliedAdvice,
    Checkpoint,
    Desired,
    Ending,
    Event,
    JobSpec,
    MachineWish,
    Outcome,
    Parked,
    Place,
    Progress,
    Quote,
    Reason,
    Registering,
    Registration,
    RentalState,
    RentedMachine,
    RunHealth,
    SavedModel,
    SshAccess,
    State,
    TrainedModel,
    Transfer,
)
from stationmaster.money import MicroDollars
from stationmaster.station.jobs import JobView, Wanted
from stationmaster.station.wire.events import EventDocument
from stationmaster.station.wire.jobs import JobDocument, StateName, WantedDocument
from stationmaster.station.wire.quote import QuoteDocument
from tests.support.jobs.spine_values import job, rental, spec
from tests.support.jobs.stored_jobs import cost_of

FULL_QUOTE = Quote(
    hours_low=0.5,
    hours_expected=1.0 / 3.0,
    hours_high=2.0,
    price_per_hour=MicroDollars(360_001),
    cost_low=MicroDollars(1),
    cost_expected=MicroDollars(123_456_789_012),
    cost_high=MicroDollars(0),
    gpu="RTX 4090",
    past_runs=3,
    reference_hours=0.9,
    fixed_hours=0.1,
    disk_gib=40.0,
    traffic_gib=1.5,
    memory_low_gib=20.3,
    memory_expected_gib=21.6,
    memory_high_gib=22.9,
    memory_runs=3,
    memory_basis="from 3 earlier runs",
    gpu_gib=24.0,
    min_vram_gib=22.0,
)

FULL_SPEC: JobSpec = spec(
    "full",
    name="katzen ☃",
    quote=FULL_QUOTE,
    max_seconds=1.0 / 3.0 * 3600,
    max_price_per_hour=MicroDollars(900_000),
    trigger="ohwx",
    parameters={"steps": 20, "rate": 5e-05, "sizes": [512, 768], "worst": math.inf, "flip": True, "none": None},
    owner="ann",
    monitoring={"gracePeriod": 5},
    retry_of="before",
    resume_from="/srv/home/jobs/before/a.safetensors",
    resume_step=10,
    resume_state="/srv/home/jobs/before/state.tar",
    machine=MachineWish(vram_gib=40.0, avoided_machines=("m1", "m2")),
    applied=(
        AppliedAdvice(
            number=1, what="batch_size", before=8, after=[1, 2], severity="warning", title="less", config_path="a.b"
        ),
    ),
)

FULL_PROGRESS = Progress(
    step=5, total_steps=20, epoch=0.5, loss=0.25, first_loss=1.5, learning_rate=1e-4, steps_per_second=2.5,
    eta_seconds=6.0, phase="training", active_step="train", at=1_700_000_000.25,
)  # fmt: skip


def full_view(**fields: Any) -> JobView:
    running = job(
        spec=FULL_SPEC,
        created_at=1_700_000_000.25,
        state=State.EXECUTING,
        state_since=1_700_000_001.5,
        version=7,
        desired=Desired.STOP,
        saves_asked=2,
        samples_asked=1,
        outcome=Outcome.INCOMPLETE,
        reason=Reason.STALLED,
        explanation="no step for an hour",
        attempt=2,
        progress=FULL_PROGRESS,
        ended_at=1_700_000_009.75,
        machine=RentedMachine(
            gpus="2 x RTX 4090", transfer=Transfer(way="fetching", bytes=5, total=10, bytes_per_second=1.5)
        ),
        ending=Ending(parked=Parked(at=1_700_000_008.0, why="no login", seq=0)),
        model=SavedModel(address="s3://models/cats", step=4),
    )
    values: dict[str, Any] = {
        "job": running,
        "now": 1_700_000_010.125,
        "shown": "INCOMPLETE",
        "stage": "training",
        "cost": MicroDollars(123_456),
        "rentals": (
            rental(job_id="full", account=None, create_sent_at=None, requested_at=1.0, state=RentalState.RELEASING,
                   release_asked_at=2.5, stopped_at=3.5),
        ),
        "costs": (cost_of("full", ended_at=4_600.0),),
        "checkpoints": (
            Checkpoint(attempt=1, path="output/a", kind="checkpoint", size=1),
            Checkpoint(attempt=2, path="b", kind="sample", size=2**40, step=3, sha256="0" * 64, location="/srv/b",
                       verified_at=1.125),
        ),
        "alerts": (Alert(kind="silence", message="no answer", job_id="full", at=5.5),),
        "access": None,
        "trained": TrainedModel(
            slug="cats-1", job_id="full", name="katzen ☃", recipe="tiny-lora@1", file_name="cats.safetensors",
            sha256="1" * 64, size=9, complete=False, created_at=8.5, owner="ann",
            places=(Place(kind="hub", address="hf://ann/cats/cats.safetensors"), Place(kind="home", address="/srv/c")),
            registration=Registration(state=Registering.DUE, note="soon"),
        ),
        "peak_gpu_gib": 21.5,
        "gpu_gib": 24.0,
        "health": RunHealth(attempt=1, health="critical", headline="the card ran out of memory"),
    }  # fmt: skip
    return JobView(**{**values, **fields})


def over_the_wire(view: JobView) -> JobView:
    return JobDocument.model_validate_json(JobDocument.of(view).model_dump_json()).value()


def test_a_job_comes_back_whole() -> None:
    view = full_view()
    back = over_the_wire(view)
    dataset = replace(back.job.spec.dataset, archive=view.job.spec.dataset.archive)
    spec_back = replace(back.job.spec, dataset=dataset)
    assert replace(back, job=replace(back.job, spec=spec_back)) == view


@pytest.mark.parametrize("held_at", [1_795_111_681.1239, 1_795_111_681.1001, 1_795_962_912.8039994])
def test_times_taken_are_the_same_on_the_other_side(held_at: float) -> None:
    """JSON has whole milliseconds: a job of 3 s was `7 % more` than quoted here and `8 % more` there."""
    view = full_view(rentals=(rental(held_at=held_at, gone_at=held_at + 3.2251),))
    view = replace(view, job=replace(view.job, created_at=held_at, ended_at=held_at + 3.2251))
    there = over_the_wire(view)
    assert there.rented_seconds == view.rented_seconds > 3.2
    assert there.taken_seconds == view.taken_seconds > 3.2


def test_a_job_of_which_little_is_known_comes_back_whole_too() -> None:
    view = full_view(
        job=job(spec=spec("full")), shown="QUEUED", stage="queued", trained=None, health=None, peak_gpu_gib=None,
        gpu_gib=None, rentals=(), costs=(), checkpoints=(), alerts=(), cost=MicroDollars(0),
    )  # fmt: skip
    back = over_the_wire(view)
    assert (back.job.spec.quote, back.job.spec.parameters, back.job.model) == (
        view.job.spec.quote,
        {},
        view.job.model,
    )
    assert replace(back, job=view.job) == view


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_a_word_in_json(loss: float) -> None:
    bad = full_view()
    bad = replace(bad, job=replace(bad.job, progress=Progress(step=1, loss=loss)))
    text = JobDocument.of(bad).model_dump_json()
    word = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))["progress"]["loss"]
    assert word in ("NaN", "Infinity", "-Infinity")
    back = JobDocument.model_validate_json(text).value().job.progress.loss
    assert back is not None
    assert math.isnan(back) if math.isnan(loss) else back == loss


def test_how_to_reach_the_machine_and_where_the_pack_lies_stay_at_home() -> None:
    access = SshAccess(host="10.0.0.9", port=22, user="root", job_root="/root/job", key_path="/srv/keys/secret-key")
    view = full_view(access=access)
    view = replace(view, job=replace(view.job, machine=RentedMachine(access=access, label="sm-label")))
    text = JobDocument.of(view).model_dump_json()
    assert json.loads(text)["providerState"]["sshHost"] == "10.0.0.9"
    for secret in ("secret-key", "/root/job", view.job.spec.dataset.archive):
        assert secret not in text
    assert over_the_wire(view).access is None


def test_a_job_without_a_worker_is_shown_so_on_the_other_side_too() -> None:
    view = full_view(shown="NEEDS_RECOVERY", job=job(spec=FULL_SPEC, state=State.EXECUTING, lease_until=5.0))
    back = over_the_wire(view)
    assert shown(back.job, now=back.now) == back.shown == "NEEDS_RECOVERY"


def test_a_state_of_a_newer_server_is_shown_as_it_is() -> None:
    view = full_view()
    document = JobDocument.of(view).model_dump(mode="json")
    newer = JobDocument.model_validate_json(json.dumps({**document, "state": "POLISHING", "new_field": 1}))
    assert newer.value().job.state.value == "POLISHING"


def test_the_states_that_can_be_asked_for_are_all_states() -> None:
    assert set(get_args(StateName)) == {state.value for state in State}


@pytest.mark.parametrize("quote", [FULL_QUOTE, spec().quote])
def test_a_quote_comes_back_to_the_last_micro_dollar(quote: Quote) -> None:
    assert QuoteDocument.model_validate_json(QuoteDocument.of(quote).model_dump_json()).value() == quote


def test_an_event_carries_its_own_fields_beside_the_common_ones() -> None:
    payload = {"from": "QUEUED", "to": "ENDED", "loss": math.inf, "files": ["a", "b"], "problem": None}
    event = Event(seq=9, job_id="full", job_version=3, kind="state", payload=payload, at=1.5)
    text = EventDocument.of(event).model_dump_json()
    assert json.loads(text)["to"] == "ENDED"
    assert EventDocument.model_validate_json(text).value() == event


def test_the_answer_to_a_request_comes_back() -> None:
    view = full_view()
    document = WantedDocument(id="full", note="it stops", job=JobDocument.of(view))
    back = WantedDocument.model_validate_json(document.model_dump_json()).value()
    assert (back, back.job.id) == (Wanted(job=over_the_wire(view).job, note="it stops"), "full")
