"""Credits, as every face may rely on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.errors import ConfigInvalid, NotFound, OutOfCredit, UserError
from stationmaster.model import CreditAccount, EntryKind, Outcome, Reason, State
from stationmaster.money import DOLLARS, MicroDollars, Unit
from stationmaster.station.base import Station
from stationmaster.station.credits import GRANT_KINDS, Adjustment, CreditChange, Grant, RefundRequest
from stationmaster.station.users import UserChanges
from stationmaster.store.store import Store
from stationmaster.store.writes import CreditHold, Settlement, Write
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.station_kinds import every_station

OpenWorld = Callable[..., LocalWorld]
CHARGED = 150
TOO_MUCH = 10**15 + 1


@pytest.fixture
def world(open_world: OpenWorld) -> LocalWorld:
    """A station with credits, and `ann` in it."""
    opened = open_world(STATIONMASTER_BILLING__ENABLED="1")
    opened.station.users.add("ann", UserChanges(inbox=True))
    return opened


def grant(station: Station, amount: int, **values: Any) -> CreditChange:
    wanted = Grant(user="ann", amount=MicroDollars(amount), reason="welcome", actor="eve")
    return station.credits.grant(replace(wanted, **values))


def adjust(station: Station, amount: int, **values: Any) -> CreditChange:
    wanted = Adjustment(user="ann", amount=MicroDollars(amount), reason="slip", actor="eve")
    return station.credits.adjust(replace(wanted, **values))


def refund(station: Station, job: str, amount: int | None = None, **values: Any) -> int:
    part = None if amount is None else MicroDollars(amount)
    wanted = RefundRequest(job=job, amount=part, reason="broken samples", actor="eve")
    return station.credits.refund(replace(wanted, **values)).amount


def charge(store: Store, job_id: str) -> None:
    """A job of ann's that has ended and was charged; only workers do that."""
    store.jobs.submit(spec(job_id, owner="ann"))
    (lease,) = store.leases.claim("worker", limit=1, seconds=60)
    refused = replace(lease.job, state=State.ENDED, outcome=Outcome.FAILED, reason=Reason.OUT_OF_CREDIT)
    hold = CreditHold(
        user="ann",
        job_id=job_id,
        attempt=1,
        least=MicroDollars(CHARGED),
        most=MicroDollars(CHARGED),
        otherwise=Write(job=refused, due_in=None),
    )
    at_work = replace(lease.job, state=State.PROVISIONING, attempt=1)
    lease = store.leases.record(lease, Write(job=at_work, ledger=(hold,)))
    over = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    settlement = Settlement(job_id=job_id, attempt=1, charge=MicroDollars(CHARGED), note="FINISHED")
    store.leases.settle(lease, Write(job=over, due_in=None, ledger=(settlement,)))


def test_amounts_are_in_the_unit_of_the_settings(open_world: OpenWorld) -> None:
    on = {"STATIONMASTER_BILLING__ENABLED": "1"}
    assert open_world(**on).station.credits.unit() == DOLLARS
    points = {"STATIONMASTER_BILLING__UNIT": "points", "STATIONMASTER_BILLING__POINTS_PER_DOLLAR": "10000"}
    assert open_world(**on, **points).station.credits.unit() == Unit(10_000)


ASKS: dict[str, Callable[[Station], object]] = {
    "unit": lambda station: station.credits.unit(),
    "accounts": lambda station: station.credits.accounts(),
    "account": lambda station: station.credits.account("me"),
    "grant": lambda station: grant(station, 1, user="me"),
    "adjust": lambda station: adjust(station, 1, user="me"),
    "refund": lambda station: refund(station, "job"),
    "entries": lambda station: station.credits.entries(),
    "prove": lambda station: station.credits.prove(),
}


@pytest.mark.parametrize("ask", ASKS)
def test_where_credits_are_off_every_question_says_so(untouched: LocalWorld, ask: str) -> None:
    station = untouched.station
    assert not station.credits.are_on()
    with pytest.raises(ConfigInvalid, match="credits are off"):
        ASKS[ask](station)


@every_station
def test_credits_that_are_given_can_be_spent_and_stand_in_the_statement(world: LocalWorld) -> None:
    credits = world.station.credits
    assert credits.are_on()
    assert credits.accounts() == []
    assert credits.account("ann") == CreditAccount(user="ann")
    for name, kind in GRANT_KINDS.items():
        assert grant(world.station, 100, kind=kind, reason=name, actor="eve").changed
    assert credits.account("ann").balance == 300
    grant(world.station, 5, user="me")
    assert [(account.user, account.balance) for account in credits.accounts()] == [("ann", 300), ("me", 5)]
    assert [(one.kind, one.balance, one.note, one.actor) for one in credits.entries("ann")] == [
        (EntryKind.GRANT, 100, "grant", world.actor("eve")),
        (EntryKind.TOP_UP, 100, "top-up", world.actor("eve")),
        (EntryKind.REWARD, 100, "reward", world.actor("eve")),
    ]
    assert [one.user for one in credits.entries()] == ["ann", "ann", "ann", "me"]
    newest, *older = credits.entries("ann", newest_first=True)
    assert [newest.note, *(one.note for one in older)] == ["reward", "top-up", "grant"]
    assert list(credits.entries("ann", after=newest.seq, newest_first=True)) == older


@every_station
def test_the_answer_to_a_grant_is_the_account_and_what_expires_is_spent_first(world: LocalWorld) -> None:
    grant(world.station, 100)
    now = world.station.now()
    account = grant(world.station, 50, expires_in=3600.0).account
    assert account == world.station.credits.account("ann")
    assert (account.balance, account.held) == (150, 0)
    first, second = account.lots
    assert (first.amount, second.expires_at) == (50, None)
    assert first.expires_at is not None
    assert now + 3600 <= first.expires_at <= world.station.now() + 3600
    after = adjust(world.station, -20).account
    assert [(lot.amount, lot.remaining) for lot in after.lots] == [(50, 30), (100, 100)]


@every_station
def test_the_same_key_again_changes_nothing(world: LocalWorld) -> None:
    first = grant(world.station, 100, key="invoice-7")
    again = grant(world.station, 100, key="invoice-7")
    assert (first.changed, again.changed) == (True, False)
    assert again.account == first.account
    assert adjust(world.station, -30, key="slip").changed
    assert not adjust(world.station, -30, key="slip").changed
    assert world.station.credits.account("ann").balance == 70


@every_station
def test_a_key_that_stands_for_something_else_is_refused(world: LocalWorld) -> None:
    grant(world.station, 100, key="invoice-7")
    others: list[Callable[[], object]] = [
        lambda: grant(world.station, 101, key="invoice-7"),
        lambda: grant(world.station, 100, key="invoice-7", user="me"),
        lambda: grant(world.station, 100, key="invoice-7", kind=EntryKind.REWARD),
        lambda: adjust(world.station, 100, key="invoice-7"),
    ]
    for other in others:
        with pytest.raises(UserError, match="is already used: "):
            other()
    assert len(list(world.station.credits.entries())) == 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"amount": 0}, "above zero"),
        ({"amount": -5}, "above zero"),
        ({"amount": TOO_MUCH}, "micro-dollars is too large"),
        ({"reason": " "}, "reason"),
        ({"kind": EntryKind.SETTLEMENT}, "not a kind of credits"),
        ({"kind": EntryKind.ADJUSTMENT}, "not a kind of credits"),
        ({"expires_in": 0.0}, "expires: must be above zero"),
        ({"expires_in": -1.0}, "expires: must be above zero"),
        ({"expires_in": float("inf")}, "expires: must be at most a hundred years"),
    ],
)
def test_a_grant_that_cannot_be_is_refused(world: LocalWorld, values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        grant(world.station, **{"amount": 1, **values})
    assert type(caught.value) is UserError
    assert caught.value.hint
    assert list(world.station.credits.entries()) == []


def test_a_balance_is_put_right_but_never_below_zero(world: LocalWorld) -> None:
    assert adjust(world.station, 100).account.balance == 100
    assert adjust(world.station, -40).account.balance == 60
    with pytest.raises(OutOfCredit, match="ann has less than that"):
        adjust(world.station, -61)
    for amount in (TOO_MUCH, -TOO_MUCH):
        with pytest.raises(UserError, match="micro-dollars is too large"):
            adjust(world.station, amount)
    with pytest.raises(UserError, match="reason"):
        adjust(world.station, 1, reason="")
    assert world.station.credits.account("ann").balance == 60


@pytest.mark.parametrize("ask", ["account", "grant", "adjust", "entries"])
def test_someone_who_was_never_here_has_no_credits(world: LocalWorld, ask: str) -> None:
    asks: dict[str, Callable[[], object]] = {
        "account": lambda: world.station.credits.account("bob"),
        "grant": lambda: grant(world.station, 1, user="bob"),
        "adjust": lambda: adjust(world.station, 1, user="bob"),
        "entries": lambda: world.station.credits.entries("bob"),
    }
    with pytest.raises(NotFound, match="there is no user bob"):
        asks[ask]()
    assert world.station.credits.accounts() == []


def test_credits_of_a_removed_user_stay_known(world: LocalWorld) -> None:
    grant(world.station, 100)
    world.station.users.remove("ann")
    assert world.station.credits.account("ann").balance == 100
    assert adjust(world.station, -100).account.balance == 0
    assert len(list(world.station.credits.entries("ann"))) == 2


@every_station
def test_what_a_job_was_charged_is_given_back_once(world: LocalWorld) -> None:
    grant(world.station, 1_000)
    charge(world.store, "mine-1234")
    assert world.station.credits.account("ann").balance == 1_000 - CHARGED
    assert refund(world.station, "mine", 50, key="half") == 50, "a job is meant by the beginning of its id"
    assert refund(world.station, "mine", 50, key="half") == 0
    with pytest.raises(UserError, match="can be refunded"):
        refund(world.station, "mine", CHARGED - 49)
    assert refund(world.station, "mine-1234") == CHARGED - 50
    with pytest.raises(UserError, match="can be refunded"):
        refund(world.station, "mine-1234")
    assert world.station.credits.account("ann").balance == 1_000


def test_a_refund_names_its_job_also_after_the_job_was_removed(world: LocalWorld) -> None:
    grant(world.station, 1_000)
    charge(world.store, "mine")
    world.station.jobs.remove("mine")
    (paid_for,) = {entry.job for entry in world.station.credits.entries("ann") if entry.job}
    wanted = RefundRequest(job=paid_for, reason="broken samples", actor="eve")
    refunded = world.station.credits.refund(wanted)
    assert (refunded.job_id, refunded.amount) == (paid_for, CHARGED)
    *_, last = world.station.credits.entries("ann")
    assert (last.kind, last.job, last.note, last.actor) == (
        EntryKind.REFUND,
        paid_for,
        "broken samples",
        world.actor("eve"),
    )


def test_a_refund_that_cannot_be_is_refused(world: LocalWorld) -> None:
    grant(world.station, 1_000)
    charge(world.store, "mine")
    with pytest.raises(NotFound, match="there is no job other"):
        refund(world.station, "other")
    for amount in (0, -1):
        with pytest.raises(UserError, match="above zero"):
            refund(world.station, "mine", amount)
    with pytest.raises(UserError, match="reason"):
        refund(world.station, "mine", reason="")
    assert world.station.credits.account("ann").balance == 1_000 - CHARGED


@every_station
def test_the_ledger_is_proved(world: LocalWorld) -> None:
    grant(world.station, 1_000)
    charge(world.store, "mine")
    refund(world.station, "mine", 50)
    proof = world.station.credits.prove()
    assert (proof.holds, proof.problems) == (True, ())
    assert (proof.accounts, proof.balance, proof.held) == (1, 900, 0)
    assert proof.entries == len(list(world.station.credits.entries()))
