"""Every way in which a paid job can end: what is charged and what comes back, to the micro-dollar."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.model import Desired, EntryKind, Outcome, Reason, State
from stationmaster.money import MicroDollars
from stationmaster.providers.fake import Trouble
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.chaos.fake import JOB, SCRIPT, Template
from tests.support.chaos.paid_jobs import BILLED, GIVEN, LEAST, MOST, QUOTE, UNHURRIED, USER, PaidStation, template
from tests.support.policies import changed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return template(tmp_path_factory.mktemp("paid"))


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Enough for one attempt at the least, and no more."""
    return template(tmp_path_factory.mktemp("poor"), given=LEAST)


@pytest.fixture(scope="module")
def broke(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return template(tmp_path_factory.mktemp("broke"), given=MicroDollars(LEAST - 1))


def cancel(store: Store) -> None:
    store.jobs.desire(JOB, Desired.CANCEL)


def at_work(name: str) -> bool:
    """After something was sent to the machine: it is rented, and costs."""
    return name == "after remote.push"


def test_a_completed_job_is_charged_what_its_machine_cost(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run")
    assert station.finish().outcome is Outcome.COMPLETED
    cost = station.cost(1)
    assert 0 < cost < MOST
    assert station.account() == (GIVEN - cost, 0)
    (told,) = station.told("settled")
    assert (told["held"], told["charged"], told["returned"]) == (MOST, cost, MOST - cost)


def test_points_are_charged_whole(made: Template, tmp_path: Path) -> None:
    policy = changed(BILLED, billing={"unit": "points"})
    station = PaidStation(made, tmp_path / "run", policy=policy)
    station.finish()
    balance, _ = station.account()
    assert (GIVEN - balance) % 100 == 0
    assert 0 <= (GIVEN - balance) - station.cost(1) < 100


def test_a_stalled_job_is_charged_what_it_used(made: Template, tmp_path: Path) -> None:
    script = replace(SCRIPT, training_steps=400, seconds_per_step=2.0, hangs_at=40, checkpoint_every=10)
    station = PaidStation(made, tmp_path / "run", policy=UNHURRIED, script=script)
    job = station.finish()
    assert (job.outcome, job.reason) == (Outcome.INCOMPLETE, Reason.STALLED)
    assert station.account() == (GIVEN - min(station.cost(1), MOST), 0)


def test_a_crashed_trainer_is_charged_what_it_used(made: Template, tmp_path: Path) -> None:
    script = replace(SCRIPT, exit_codes={("train", 1): 1}, fails_at=1)
    station = PaidStation(made, tmp_path / "run", script=script)
    job = station.finish()
    assert (job.outcome, job.reason) == (Outcome.FAILED, Reason.STEP_FAILED)
    assert station.account() == (GIVEN - station.cost(1), 0)


def test_a_job_without_a_machine_is_not_charged_however_often_it_was_tried(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run")
    station.provider.will(Trouble.NEVER_READY, times=3)
    job = station.finish()
    assert (job.outcome, job.attempt) == (Outcome.FAILED_PROVISIONING, 3)
    assert sum(station.cost(attempt) for attempt in (1, 2, 3)) > 0, "the machines did cost somebody something"
    assert station.account() == (GIVEN, 0)
    assert [told["charged"] for told in station.told("settled")] == [0, 0, 0]


def test_nothing_on_offer_costs_nothing(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run")
    station.provider.will(Trouble.NO_OFFERS, times=100)
    assert station.finish().outcome is Outcome.FAILED_PROVISIONING
    assert station.account() == (GIVEN, 0)


def test_cancelled_before_anything_was_rented_costs_nothing(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run")
    station.interrupt(lambda name: name == "before BEGIN", cancel)
    assert station.finish().outcome is Outcome.CANCELLED
    assert station.account() == (GIVEN, 0)


def test_cancelled_at_work_keeps_a_tenth_of_the_hold(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run")
    station.interrupt(at_work, cancel)
    assert station.finish().reason is Reason.CANCELLED_BY_USER
    assert 0 < station.cost(1) < MOST // 10
    assert station.account() == (GIVEN - MOST // 10, 0)


def test_a_lost_machine_is_not_charged_and_the_next_attempt_is_held_for_anew(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run")
    station.interrupt(at_work, lambda _store: station.lose_the_machine())
    job = station.finish()
    assert (job.outcome, job.attempt) == (Outcome.COMPLETED, 2)
    assert station.cost(1) > 0
    assert station.account() == (GIVEN - station.cost(2), 0)


def test_without_the_credits_nothing_is_rented(broke: Template, tmp_path: Path) -> None:
    station = PaidStation(broke, tmp_path / "run")
    job = station.finish()
    assert (job.outcome, job.reason, job.attempt) == (Outcome.FAILED, Reason.OUT_OF_CREDIT, 0)
    assert "$0.072 of credits" in str(job.explanation)
    assert station.provider.created == []
    assert station.account() == (LEAST - 1, 0)


def test_a_further_attempt_without_the_credits_for_it_ends_the_job(poor: Template, tmp_path: Path) -> None:
    """All she had was held for the first attempt, and comes back; the next one needs a trifle more."""
    station = PaidStation(poor, tmp_path / "run")

    def spend(store: Store) -> None:
        station.lose_the_machine()
        with store.database.write() as connection:
            connection.exec_driver_sql(
                "UPDATE jobs SET spec = replace(spec, '\"cost_high\":72000', '\"cost_high\":72001')"
            )

    station.interrupt(at_work, spend)
    job = station.finish()
    assert (job.state, job.reason, job.attempt) == (State.ENDED, Reason.OUT_OF_CREDIT, 1)
    assert station.account() == (LEAST, 0), "the lost machine was not charged"
    assert len(station.told("outcome")) == 1


def test_the_end_of_the_credits_ends_the_training_and_keeps_the_model(poor: Template, tmp_path: Path) -> None:
    """The hold buys a fifth of an hour; the limits of the job itself would allow for more."""
    script = replace(SCRIPT, training_steps=10_000, checkpoint_every=10)
    station = PaidStation(poor, tmp_path / "run", policy=UNHURRIED, script=script)
    job = station.finish()
    assert (job.outcome, job.reason) == (Outcome.INCOMPLETE, Reason.HARD_LIMIT)
    assert job.model.address
    assert station.cost(1) >= LEAST
    assert station.account() == (0, 0), "no more than was held is charged"


def test_billing_that_is_switched_off_still_settles_what_was_held(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run")
    station.interrupt(at_work, lambda _store: None)
    station.policy = changed(BILLED, billing={"enabled": False})
    station.finish()
    assert station.account() == (GIVEN - station.cost(1), 0)


def test_without_billing_nothing_is_held_and_nobody_hears_of_credits(made: Template, tmp_path: Path) -> None:
    station = PaidStation(made, tmp_path / "run", policy=changed(BILLED, billing={"enabled": False}))
    station.finish()
    assert station.account() == (GIVEN, 0)
    assert station.told("settled") == []
    with station.store() as store:
        assert [entry.kind for entry in store.ledger.entries(USER)] == [EntryKind.GRANT]


def test_a_job_waits_in_the_queue_while_the_day_has_no_room_for_it(made: Template, tmp_path: Path) -> None:
    """Another job of hers is at work and expected to cost all that the day allows."""
    station = PaidStation(made, tmp_path / "run", policy=changed(BILLED, limits={"daily_spend": QUOTE.cost_expected}))
    with station.store() as store:
        spec = store.jobs.get(JOB).spec
        store.jobs.submit(replace(spec, id="other", provider="elsewhere"))
        (other,) = store.leases.claim("somebody", limit=1, seconds=1_000.0, excluded_providers=("fake",))
        at_work = Write(job=replace(other.job, state=State.EXECUTING, attempt=1), due_in=None)
        lease = store.leases.record(other, at_work)
    station.most_rounds, usual = 30, station.most_rounds
    with pytest.raises(AssertionError, match="still in QUEUED"):
        station.finish()
    station.most_rounds = usual
    assert station.account() == (GIVEN, 0), "nothing is held for a job that waits"
    with station.store() as store:
        assert [alert.kind for alert in store.alerts.open(JOB)] == ["daily_cap"]
        over = replace(lease.job, state=State.ENDED, outcome=Outcome.CANCELLED, reason=Reason.CANCELLED_BY_USER)
        store.leases.settle(lease, Write(job=over, due_in=None))
    assert station.finish().outcome is Outcome.COMPLETED
    with station.store() as store:
        assert store.alerts.open(JOB) == []
