"""The chain's own thinking: which place is next, when one is given up, and who gets no token."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from stationmaster.control.flow.policy import Policy
from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.control.publishing.chain import Deliver, deliver, not_delivered
from stationmaster.control.publishing.machine_source import sent_by_machine
from stationmaster.control.publishing.publish import SendOn, ShowCard, ShowSamples, next_publishing
from stationmaster.errors import DeliveryBusy, DeliveryRefused
from stationmaster.model import (
    Checkpoint,
    Desired,
    Ending,
    Job,
    OutputFile,
    Place,
    Reason,
    RentedMachine,
    SshAccess,
    State,
)
from tests.support.jobs.spine_values import job, visit
from tests.support.policies import changed

BOTH = ("hub", "bucket")
POLICY = Policy(links=BOTH, retry_seconds=(5.0,))
HUB = Place(kind="hub", address="hf://anna/cats/m.safetensors")
FILE = OutputFile(path="output/m.safetensors", kind="checkpoint", size=1, mtime=0.0, sha256="a" * 64)


def fetching(**fields: Any) -> Job:
    return job(state=State.FETCHING_RESULTS, **fields)


def finalizing(**fields: Any) -> Job:
    model = notes.with_model(job(), FILE, address="/home/m.safetensors", step=None).model
    return job(state=State.FINALIZING, model=model, **fields)


def test_the_places_have_their_turn_in_order_until_one_has_the_model() -> None:
    first = fetching()
    second = notes.with_failure(first, "hub", "403")
    assert notes.next_link(first, BOTH) == "hub"
    assert notes.next_link(second, BOTH) == "bucket"
    assert notes.next_link(notes.with_failure(second, "bucket", "down"), BOTH) is None
    assert notes.next_link(notes.with_place(second, HUB), BOTH) is None
    assert notes.next_link(first, ()) is None


def test_what_is_only_kept_or_goes_on_elsewhere_is_not_published() -> None:
    assert notes.next_link(fetching(ending=Ending(reason=Reason.OUTBID)), BOTH) is None
    assert notes.next_link(replace(fetching(), desired=Desired.CANCEL_KEEP), BOTH) is None


def test_an_earlier_attempts_failures_and_places_do_not_count() -> None:
    before = notes.with_place(notes.with_failure(fetching(), "hub", "403"), HUB)
    again = replace(before, attempt=2)
    assert notes.next_link(again, BOTH) == "hub"
    assert notes.places(again) == ()


def test_a_busy_place_is_tried_three_times_then_told() -> None:
    looked_at, pauses = fetching(), []
    for _ in range(3):
        write = not_delivered(looked_at, "hub", DeliveryBusy("503"), POLICY)
        looked_at = write.job
        pauses.append(write.due_in)
    assert pauses == [5.0, 5.0, 0.0]
    assert [event.payload for event in write.events] == [{"place": "hub", "problem": "503"}]
    assert notes.next_link(looked_at, BOTH) == "bucket"


def test_a_refusal_is_final_and_a_long_wait_is_not_waited_for() -> None:
    for problem in (DeliveryRefused("403"), DeliveryBusy("429", retry_after_seconds=61.0)):
        assert notes.has_failed(not_delivered(fetching(), "hub", problem, POLICY).job, "hub")
    patient = not_delivered(fetching(), "hub", DeliveryBusy("429", retry_after_seconds=30.0), POLICY)
    assert (patient.due_in, patient.events) == (30.0, ())


@pytest.mark.parametrize("link", BOTH)
def test_no_token_or_signed_address_goes_to_a_machine_that_nobody_could_verify(link: str) -> None:
    access = SshAccess(host="h", port=22, user="root", job_root="/r", unverified=True)
    looked_at = fetching(machine=RentedMachine(access=access, label="l"))
    world: Any = type("World", (), {"policy": POLICY})()  # whoever is asked for anything else of it has gone too far
    checkpoint = Checkpoint(attempt=1, path=FILE.path, kind="checkpoint", size=1)
    write = asyncio.run(deliver(Deliver(link=link, file=FILE), looked_at, checkpoint, visit(looked_at), world))
    assert notes.has_failed(write.job, link)
    assert "host key" in write.events[0].payload["problem"]


def test_after_the_weights_come_samples_then_the_card_then_nothing() -> None:
    there = notes.with_place(finalizing(), HUB)
    shown = notes.with_done(there, "samples")
    assert next_publishing(there, Reason.FINISHED, POLICY) == ShowSamples()
    assert next_publishing(shown, Reason.FINISHED, POLICY) == ShowCard(reason=Reason.FINISHED)
    assert next_publishing(notes.with_done(shown, "card"), Reason.FINISHED, POLICY) is None
    assert next_publishing(notes.with_failure(shown, "card", "503"), Reason.FINISHED, POLICY) is None


def test_home_sends_what_the_machine_could_not() -> None:
    alone = finalizing()
    once = notes.with_failure(alone, "hub from home", "403")
    assert next_publishing(alone, Reason.FINISHED, POLICY) == SendOn(link="hub")
    assert next_publishing(once, Reason.FINISHED, POLICY) == SendOn(link="bucket")
    assert next_publishing(notes.with_failure(once, "bucket from home", "down"), Reason.FINISHED, POLICY) is None
    assert next_publishing(alone, Reason.FINISHED, Policy()) is None


def test_a_private_model_that_is_to_be_registered_gets_a_copy_in_the_bucket() -> None:
    there = notes.with_done(notes.with_done(notes.with_place(finalizing(), HUB), "samples"), "card")
    registers = changed(POLICY, comfydeploy={"api_key": SecretStr("key")})
    assert next_publishing(there, Reason.FINISHED, registers) == SendOn(link="bucket")
    assert next_publishing(there, Reason.STALLED, registers) is None
    assert next_publishing(there, Reason.STALLED, changed(registers, comfydeploy={"incomplete": True})) == SendOn(
        link="bucket"
    )
    public = notes.with_place(there, replace(HUB, public=True))
    assert next_publishing(public, Reason.FINISHED, registers) is None


def test_nothing_is_published_where_there_is_no_model_or_it_was_given_up() -> None:
    assert next_publishing(job(state=State.FINALIZING), Reason.NO_MODEL, POLICY) is None
    kept = finalizing(desired=Desired.CANCEL_KEEP)
    assert next_publishing(kept, Reason.CANCELLED_BY_USER, POLICY) is None


@pytest.mark.parametrize("etag", ["x" * 300, "a\nb", '"\x00"'])
def test_what_a_machine_calls_an_etag_is_looked_at(etag: str) -> None:
    assert isinstance(sent_by_machine({"ok": True, "etags": [etag]}, 1).problem, DeliveryRefused)


@pytest.mark.parametrize("answer", [{}, {"etags": 7}, {"ok": False, "etags": None, "status": "403"}])
def test_an_answer_that_makes_no_sense_has_sent_nothing(answer: dict[str, Any]) -> None:
    found = sent_by_machine(answer, 1)
    assert (found.etags, found.status, isinstance(found.problem, DeliveryBusy)) == ((), None, True)
