"""Paid deliveries from rented machines: where each model is, its card, and who is charged what to the micro-dollar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from stationmaster.errors import OutOfCredit
from stationmaster.model import Outcome, Reason
from stationmaster.money import MicroDollars
from tests.support.capabilities import require
from tests.support.chaos.paid_deliveries import (
    ENDLESS,
    GIVEN,
    HELD,
    OWNER,
    QUICK,
    PaidDeliveries,
    paid_deliveries,
    sha256,
)
from tests.support.servers.hub_server import HUB_TOKEN

CRASHED = {**QUICK, "fault": "crash", "fault_at": 15}
STALLED = {
    "steps": 400, "seconds_per_step": 0.02, "save_every": 50, "sample_every": 50, "fault": "stall", "fault_at": 230,
}  # fmt: skip
THRESHOLDS = {
    "min_window": "3s",
    "patience_steps": 10,
    "patience_lines": 2,
    "near_end_eta": "1s",
    "resume_span": "1s",
    "resume_window": "2s",
    "start_limit": "60s",
}
IMPATIENT = {"gracePeriod": 1000, "poll_interval": 0.5, "save_timeout": 1, "stallDetection": {"thresholds": THRESHOLDS}}
LIMIT_SECONDS = 90.0
FETCH_SECONDS = 5.0
UNREADY = 3  # attempts that never get to a login before a job is given up

ENDINGS = {
    "complete": (Outcome.COMPLETED, Reason.FINISHED),
    "refused": (Outcome.COMPLETED, Reason.FINISHED),
    "crashed": (Outcome.FAILED, Reason.STEP_FAILED),
    "cancelled": (Outcome.CANCELLED, Reason.CANCELLED_BY_USER),
    "unready": (Outcome.FAILED_PROVISIONING, Reason.MACHINE_NOT_READY),
    "broke": (Outcome.FAILED, Reason.OUT_OF_CREDIT),
}
LATE_ENDINGS = {
    "stalled": (Outcome.INCOMPLETE, Reason.STALLED),
    "homeward": (Outcome.COMPLETED, Reason.FINISHED),
    "lost": (Outcome.FAILED, Reason.FETCH_FAILED),
}


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidDeliveries]:
    """After the jobs of every day have ended."""
    require("sshd")
    limits = {"STATIONMASTER_LIMITS__FETCH": str(FETCH_SECONDS), "STATIONMASTER_SWEEP__ABANDON_AFTER": "5s"}
    with paid_deliveries(tmp_path_factory.mktemp("delivery"), **limits) as opened:
        opened.hub.refuse("POST /api/models/anna/refused-[^/]*/preupload", 403, times=None)
        spend_between_submit_and_claim(opened)
        opened.start("cancelled", ENDLESS)
        opened.start("crashed", CRASHED)
        opened.start("complete", QUICK)
        opened.start("refused", QUICK)
        never_ready(opened, "unready")
        opened.start("unready", QUICK)
        opened.until_saved("cancelled")
        opened.cancel("cancelled")
        opened.until_ended(*ENDINGS)
        yield opened


@pytest.fixture(scope="module")
def late(station: PaidDeliveries) -> PaidDeliveries:
    """After one that stalled, and after those that find neither Hub nor bucket."""
    station.start("stalled", STALLED, monitoring=IMPATIENT)
    station.until_ended("stalled")
    station.take_places_down()
    station.start("lost", ENDLESS, max_hours=LIMIT_SECONDS / 3600)
    station.start("homeward", QUICK)
    station.until_saved("lost")
    (machine,) = station.machines("lost")
    station.storm.customer.arm("partition", instance_id=machine["id"], seconds=3600.0)
    station.until_ended("homeward", "lost")
    return station


def never_ready(station: PaidDeliveries, name: str) -> None:
    for attempt in range(1, UNREADY + 1):
        label = f"{station.storm.label_prefix}{name}-{attempt}"
        station.storm.customer.arm("never_ready", label=label, message="OCI runtime create failed: no such device")


def spend_between_submit_and_claim(station: PaidDeliveries) -> None:
    """Bob's credits suffice when his job is asked for, and no longer when it is to begin."""
    station.allow("bob", MicroDollars(HELD))
    station.submit("broke", QUICK, owner="bob")
    station.storm.store.ledger.adjust("bob", MicroDollars(1 - HELD), note="spent elsewhere")


@pytest.mark.parametrize("name", ENDINGS)
def test_a_job_ends_as_its_story_says(station: PaidDeliveries, name: str) -> None:
    assert_ended(station, name, ENDINGS[name])


def test_a_finished_model_is_on_the_hub_and_at_home_with_a_card_that_shows_its_samples(
    station: PaidDeliveries,
) -> None:
    assert_places(station, "complete", {"hub", "home"})
    front = front_matter(card_of(station, "complete"))
    assert "incomplete" not in front["tags"]
    repo = f"anna/{slug_of(station, 'complete')}"
    assert len(front["widget"]) == 4
    assert all(station.hub.content(repo, one["output"]["url"]) for one in front["widget"])


def test_a_model_that_the_hub_refused_is_in_the_bucket_and_the_reason_is_told(station: PaidDeliveries) -> None:
    assert_places(station, "refused", {"bucket", "home"})
    (told,) = station.told("refused", "delivery_failed")
    assert told["place"] == "hub"
    assert "403" in told["problem"]


def test_what_a_crashed_trainer_had_saved_is_published_as_incomplete(station: PaidDeliveries) -> None:
    assert_places(station, "crashed", {"hub", "home"})
    card = card_of(station, "crashed")
    assert front_matter(card)["tags"][-1] == "incomplete"
    assert "- Target steps: 20\n- Completed steps: 10 (50.0%)\n" in card
    assert "training stall" not in card


@pytest.mark.parametrize("name", ["cancelled", "unready", "broke"])
def test_nothing_is_published_of_a_job_that_was_given_up(station: PaidDeliveries, name: str) -> None:
    assert station.model(name) is None
    assert not [repo for _, repo in station.hub.repos if repo.startswith(f"anna/{name}")]


@pytest.mark.parametrize(("name", "attempts"), [("complete", 1), ("refused", 1), ("crashed", 1)])
def test_who_used_a_machine_is_charged_what_it_cost(station: PaidDeliveries, name: str, attempts: int) -> None:
    assert_charged(station, name, attempts=attempts)
    (attempt,) = station.attempts(name)
    assert 0 < attempt.charged == attempt.cost < HELD


def test_who_cancels_gets_nine_tenths_back_or_what_is_left(station: PaidDeliveries) -> None:
    assert_charged(station, "cancelled", attempts=1)
    (attempt,) = station.attempts("cancelled")
    assert attempt.cost > 0
    assert attempt.returned == min(HELD * 9 // 10, HELD - attempt.cost)


def test_machines_that_never_got_ready_cost_us_and_nobody_else(station: PaidDeliveries) -> None:
    assert_charged(station, "unready", attempts=UNREADY)
    assert all(attempt.cost > 0 == attempt.charged for attempt in station.attempts("unready"))


def test_without_the_credits_nothing_is_held_or_rented(station: PaidDeliveries) -> None:
    assert station.job("broke").attempt == 0
    assert station.attempts("broke") == []
    assert station.machines("broke") == []
    assert station.storm.store.ledger.account("bob").balance == 1
    with pytest.raises(OutOfCredit, match="bob has"):
        station.submit("refused-at-once", QUICK, owner="bob")
    assert "refused-at-once" not in [job.id for job in station.storm.jobs()]


def test_the_ledger_is_sound_and_its_sums_are_those_of_the_jobs(station: PaidDeliveries) -> None:
    assert_books_balance(station)


def test_every_machine_is_gone_by_its_providers_own_word_and_none_had_a_token(station: PaidDeliveries) -> None:
    assert_nothing_left(station)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LATE_ENDINGS)
def test_a_longer_job_ends_as_its_story_says(late: PaidDeliveries, name: str) -> None:
    assert_ended(late, name, LATE_ENDINGS[name])
    assert_charged(late, name, attempts=1)
    (attempt,) = late.attempts(name)
    assert 0 < attempt.charged == attempt.cost < HELD


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_stalled_model_is_published_as_incomplete_to_the_letter(late: PaidDeliveries) -> None:
    assert_places(late, "stalled", {"hub", "home"})
    card = card_of(late, "stalled")
    model = late.model("stalled")
    assert model is not None
    saved = model.details["steps"]
    assert front_matter(card)["tags"][-2:] == ["lora", "incomplete"]
    assert (
        "# stalled\n\n⚠️ **This model was terminated early due to training stall.**\n\n- Target steps: 400\n"
        f"- Completed steps: {saved} ({saved / 4:.1f}%)\n- Reason: ETA not converging\n\n"
        "The model may still be usable but was not fully trained.\n"
    ) in card


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_that_neither_hub_nor_bucket_took_is_at_home(late: PaidDeliveries) -> None:
    assert_places(late, "homeward", {"home"})
    tried = [told["place"] for told in late.told("homeward", "delivery_failed")]
    assert tried == ["hub", "bucket", "hub from home", "bucket from home"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_machine_that_stays_silent_is_given_back_at_the_hard_limit_and_the_loss_is_told(
    late: PaidDeliveries,
) -> None:
    job = late.job("lost")
    assert late.places("lost") == {}
    assert "the model could not be downloaded" in (job.explanation or "")
    assert "its model is lost" in (job.explanation or "")
    (rental,) = late.storm.store.rentals.of_job("lost")
    assert rental.gone_at is not None
    assert job.deadline_at is not None
    assert rental.gone_at > job.deadline_at, "given up before its time"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_after_all_of_them_the_books_balance_and_nothing_is_left(late: PaidDeliveries) -> None:
    assert_books_balance(late)
    assert_nothing_left(late)


def assert_ended(station: PaidDeliveries, name: str, ending: tuple[Outcome, Reason]) -> None:
    job = station.job(name)
    assert (job.outcome, job.reason) == ending, job.explanation
    assert len(station.told(name, "outcome")) == 1


def assert_places(station: PaidDeliveries, name: str, kinds: set[str]) -> None:
    """The model lies in these places and no other, whole in each."""
    model, places = station.model(name), station.places(name)
    assert model is not None
    assert set(places) == kinds
    assert {sha256(content) for content in places.values()} == {model.sha256}
    assert {len(content) for content in places.values()} == {model.size}


def assert_charged(station: PaidDeliveries, name: str, *, attempts: int) -> None:
    """One hold and one settlement for each attempt, as the policy says, and as the person was told."""
    found = station.attempts(name)
    assert len(found) == attempts
    for attempt in found:
        assert attempt.held == HELD
        assert attempt.charged == attempt.due, attempt
        assert attempt.returned == HELD - attempt.charged
    told = [(said["held"], said["charged"], said["returned"]) for said in station.told(name, "settled")]
    assert told == [(attempt.held, attempt.charged, attempt.returned) for attempt in found]


def assert_books_balance(station: PaidDeliveries) -> None:
    spent = sum(attempt.due for job in station.storm.jobs() for attempt in station.attempts(job.id))
    account = station.storm.store.ledger.account(OWNER)
    assert spent > 0
    assert (account.balance, account.held) == (GIVEN - spent, 0)
    assert station.verified().startswith("the ledger is sound: ")


def assert_nothing_left(station: PaidDeliveries) -> None:
    assert station.storm.truth()
    assert station.storm.alive() == []
    left = [path for path in (station.storm.home.parent / "simulator").rglob("*") if path.is_file()]
    assert [path for path in left if HUB_TOKEN.encode() in path.read_bytes()] == []


def card_of(station: PaidDeliveries, name: str) -> str:
    card = station.hub.content(f"anna/{slug_of(station, name)}", "README.md")
    assert card is not None, f"{name} has no card"
    return card.decode()


def slug_of(station: PaidDeliveries, name: str) -> str:
    model = station.model(name)
    assert model is not None
    return model.slug


def front_matter(card: str) -> dict[str, Any]:
    found = yaml.safe_load(card.split("---\n")[1])
    assert isinstance(found, dict)
    return found
