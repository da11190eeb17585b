"""Credits move with the job or not at all, are spent in their order, and can never be less than nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from stationmaster.errors import IllegalMove, LeaseLost, NotFound, OutOfCredit, UserError
from stationmaster.model import SINGLE_USER, CostLine, CreditAccount, EntryKind, Job, Outcome, Reason, State
from stationmaster.money import MicroDollars
from stationmaster.store.leases import Lease, LeasedWrite
from stationmaster.store.ledger_posting import RETURN_GRACE_SECONDS
from stationmaster.store.store import Store
from stationmaster.store.tables import credit_lots, ledger_entries
from stationmaster.store.writes import CreditHold, DailyCapCheck, Settlement, Write
from tests.support.jobs.spine_values import spec

DAY = 86_400.0


def claimed(store: Store, job_id: str, *, owner: str = "worker") -> Lease:
    store.jobs.submit(spec(job_id, owner="ann"))
    (lease,) = [one for one in store.leases.claim(owner, limit=100, seconds=60) if one.job.id == job_id]
    return lease


def refused(job: Job) -> Write:
    ended = replace(job, state=State.ENDED, outcome=Outcome.FAILED, reason=Reason.OUT_OF_CREDIT)
    return Write(job=ended, due_in=None)


def with_hold(job: Job, *, least: int, most: int, attempt: int = 1) -> Write:
    at_work = replace(job, state=State.PROVISIONING, attempt=attempt)
    hold = CreditHold(
        user="ann",
        job_id=job.id,
        attempt=attempt,
        least=MicroDollars(least),
        most=MicroDollars(most),
        otherwise=refused(job),
    )
    return Write(job=at_work, ledger=(hold,))


def ended(job: Job, *, charge: int, attempt: int = 1) -> Write:
    settlement = Settlement(job_id=job.id, attempt=attempt, charge=MicroDollars(charge), note="FINISHED")
    over = replace(job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    return Write(job=over, due_in=None, ledger=(settlement,))


def give(store: Store, amount: int, **options: object) -> None:
    assert store.ledger.grant("ann", MicroDollars(amount), note="a gift", **options)  # type: ignore[arg-type]


def credits(store: Store) -> tuple[int, int]:
    account = store.ledger.account("ann")
    return account.balance, account.held


def kinds(store: Store) -> list[EntryKind]:
    return [entry.kind for entry in store.ledger.entries("ann")]


def test_a_hold_is_made_with_the_claim_and_settled_with_the_end(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=300, most=400))
    assert credits(store) == (600, 400)
    assert store.jobs.get("job").funding.hold == 400
    store.leases.settle(lease, ended(lease.job, charge=150))
    assert credits(store) == (850, 0)
    assert kinds(store) == [EntryKind.GRANT, EntryKind.HOLD, EntryKind.SETTLEMENT, EntryKind.RELEASE]
    assert store.ledger.prove().problems == ()


def test_a_hold_takes_what_is_there_but_not_less_than_the_least(store: Store) -> None:
    give(store, 350)
    lease = claimed(store, "job")
    store.leases.settle(lease, with_hold(lease.job, least=300, most=400))
    assert credits(store) == (0, 350)


def test_without_enough_credits_the_other_write_is_made_and_nothing_is_held(store: Store) -> None:
    give(store, 299)
    lease = claimed(store, "job")
    after = store.leases.record(lease, with_hold(lease.job, least=300, most=400))
    assert (after.job.state, after.job.reason) == (State.ENDED, Reason.OUT_OF_CREDIT)
    assert store.jobs.get("job").state is State.ENDED
    assert credits(store) == (299, 0)
    assert kinds(store) == [EntryKind.GRANT]


def test_somebody_without_an_account_has_no_credits(store: Store) -> None:
    lease = claimed(store, "job")
    store.leases.settle(lease, with_hold(lease.job, least=1, most=1))
    assert store.jobs.get("job").reason is Reason.OUT_OF_CREDIT
    assert credits(store) == (0, 0)


def test_a_worker_that_lost_its_lease_moves_no_credits(store: Store) -> None:
    give(store, 1_000)
    lease = replace(lease := claimed(store, "job"), token=lease.token + 1)
    with pytest.raises(LeaseLost):
        store.leases.settle(lease, with_hold(lease.job, least=1, most=400))
    assert credits(store) == (1_000, 0)


def test_of_several_writes_one_that_lost_its_lease_takes_nothing_with_it(store: Store) -> None:
    give(store, 1_000)
    first = claimed(store, "first")
    second = claimed(store, "second")
    lost = replace(second, token=second.token + 1)
    entries = [LeasedWrite(lease=one, write=with_hold(one.job, least=1, most=400)) for one in (lost, first)]
    after = store.leases.write(entries)
    assert after[0] is None
    assert after[1] is not None
    assert credits(store) == (600, 400)


def test_a_further_attempt_settles_and_holds_in_one_step(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=800))
    settlement = Settlement(job_id="job", attempt=1, charge=MicroDollars(100))
    again = with_hold(lease.job, least=1, most=800, attempt=2)
    store.leases.settle(lease, replace(again, ledger=(settlement, *again.ledger)))
    assert credits(store) == (100, 800)
    assert store.ledger.prove().problems == ()


def test_a_further_attempt_that_cannot_be_paid_is_settled_and_ends(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=800))
    settlement = Settlement(job_id="job", attempt=1, charge=MicroDollars(300))
    again = with_hold(lease.job, least=800, most=800, attempt=2)
    (hold,) = again.ledger
    assert isinstance(hold, CreditHold)
    hold = replace(hold, otherwise=replace(hold.otherwise, ledger=(settlement,)))
    store.leases.settle(lease, replace(again, ledger=(settlement, hold)))
    assert store.jobs.get("job").reason is Reason.OUT_OF_CREDIT
    assert credits(store) == (700, 0)
    assert store.ledger.prove().problems == ()


def test_a_settlement_is_made_once_however_often_it_is_asked_for(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=400))
    lease = store.leases.record(lease, ended(lease.job, charge=100))
    store.leases.settle(lease, ended(lease.job, charge=400))
    assert credits(store) == (900, 0)


def test_more_than_was_held_is_never_charged(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=400))
    store.leases.settle(lease, ended(lease.job, charge=5_000))
    assert credits(store) == (600, 0)
    assert store.ledger.prove().problems == ()


def test_credits_that_expire_are_spent_first_then_the_oldest(open_store: Callable[..., Store]) -> None:
    given: tuple[dict[str, object], ...] = ({"key": "old"}, {"key": "new"}, {"key": "soon", "expires_in": DAY})
    for seconds, options in enumerate(given):  # each at a time of its own
        store = open_store(later=seconds)
        give(store, 100, **options)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=250))
    store.leases.settle(lease, ended(lease.job, charge=150))
    left = {lot.id: lot.remaining for lot in store.ledger.account("ann").lots}
    assert left == {"old": 50, "new": 100}


def test_what_nobody_spent_in_time_is_written_off(open_store: Callable[..., Store]) -> None:
    store = open_store()
    give(store, 100, expires_in=DAY)
    give(store, 50)
    later = open_store(later=DAY + 1)
    assert credits(later) == (50, 0)
    assert kinds(store)[-1] is EntryKind.EXPIRY
    assert store.ledger.prove().problems == ()


def test_expired_credits_pay_for_nothing(open_store: Callable[..., Store]) -> None:
    store = open_store()
    give(store, 100, expires_in=DAY)
    later = open_store(later=DAY + 1)
    lease = claimed(later, "job")
    later.leases.settle(lease, with_hold(lease.job, least=60, most=100))
    assert store.jobs.get("job").reason is Reason.OUT_OF_CREDIT


def test_credits_that_come_back_after_they_expired_can_still_be_spent_for_a_while(
    open_store: Callable[..., Store],
) -> None:
    store = open_store()
    give(store, 100, expires_in=DAY)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=100))
    later = open_store(later=DAY + 1)
    later.leases.settle(lease, ended(lease.job, charge=0))
    assert credits(later) == (100, 0)
    assert credits(open_store(later=DAY + RETURN_GRACE_SECONDS + 2)) == (0, 0)


def test_the_same_key_again_changes_nothing(store: Store) -> None:
    for _ in range(2):
        store.ledger.grant("ann", MicroDollars(100), note="", key="invoice 7", kind=EntryKind.TOP_UP)
    store.ledger.adjust("ann", MicroDollars(-30), note="", key="slip")
    assert not store.ledger.adjust("ann", MicroDollars(-30), note="", key="slip")
    assert credits(store) == (70, 0)


def test_an_adjustment_cannot_take_what_is_not_there(store: Store) -> None:
    give(store, 100)
    with pytest.raises(OutOfCredit):
        store.ledger.adjust("ann", MicroDollars(-101), note="too much")
    assert credits(store) == (100, 0)


@pytest.mark.parametrize("amount", [0, -5])
def test_nothing_is_not_granted(store: Store, amount: int) -> None:
    with pytest.raises(UserError):
        store.ledger.grant("ann", MicroDollars(amount), note="")


def test_a_refund_gives_back_what_was_charged_and_no_more(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=400))
    store.leases.settle(lease, ended(lease.job, charge=300))
    assert store.ledger.refund("job", MicroDollars(100), note="sorry") == 100
    with pytest.raises(UserError, match="at most 200"):
        store.ledger.refund("job", MicroDollars(201), note="too much")
    assert store.ledger.refund("job", note="all of it") == 200
    with pytest.raises(UserError):
        store.ledger.refund("job", note="again")
    assert credits(store) == (1_000, 0)
    assert store.ledger.prove().problems == ()


def test_a_job_that_nothing_was_held_for_is_not_refunded(store: Store) -> None:
    with pytest.raises(NotFound):
        store.ledger.refund("job", note="what for")


def test_many_at_once_never_spend_more_than_there_is(open_store: Callable[..., Store]) -> None:
    """Forty jobs of one person, for whose credits ten are enough, claimed from four connections at the same time."""
    store = open_store()
    give(store, 1_000)
    leases = [claimed(store, f"job-{number}") for number in range(40)]
    shares = [(open_store(), leases[start::4]) for start in range(4)]

    def work(share: tuple[Store, list[Lease]]) -> None:
        own, mine = share
        for lease in mine:
            own.leases.settle(lease, with_hold(lease.job, least=100, most=100))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, shares))
    assert credits(store) == (0, 1_000)
    held = [store.jobs.get(lease.job.id).state for lease in leases]
    assert held.count(State.PROVISIONING) == 10
    proof = store.ledger.prove()
    assert proof.problems == ()
    assert (proof.balance, proof.held) == (0, 1_000)


def test_removing_a_job_leaves_its_entries_and_its_id_is_not_given_again(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=400))
    store.leases.settle(lease, ended(lease.job, charge=300))
    store.jobs.remove("job")
    assert [entry.job for entry in store.ledger.entries(job="job")] == ["job"] * 3
    assert store.ledger.prove().problems == ()
    with pytest.raises(IllegalMove, match="belonged to a removed job"):
        store.jobs.submit(spec("job"))


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (ledger_entries.update().where(ledger_entries.c.kind == "SETTLEMENT").values(held=-299), "held"),
        (ledger_entries.delete().where(ledger_entries.c.kind == "RELEASE"), "still held"),
        (ledger_entries.delete().where(ledger_entries.c.kind == "GRANT"), "is below zero"),
        (credit_lots.update().values(remaining=credit_lots.c.remaining + 1), " left, but its entries"),
        (credit_lots.delete(), "does not exist"),
        (credit_lots.update().values(user="bob"), "the lots hold"),
        (sa.text("delete from credit_accounts"), "no account"),
    ],
)
def test_the_proof_finds_what_was_tampered_with(store: Store, harm: sa.Executable, complaint: str) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=400))
    store.leases.settle(lease, ended(lease.job, charge=300))
    with store.database.write() as connection:
        connection.execute(harm)
    proof = store.ledger.prove()
    assert not proof.holds
    assert any(complaint in problem for problem in proof.problems), proof.problems


def test_the_proof_finds_a_hold_that_outlived_its_job(store: Store) -> None:
    give(store, 1_000)
    lease = store.leases.record(lease := claimed(store, "job"), with_hold(lease.job, least=1, most=400))
    store.leases.settle(lease, replace(ended(lease.job, charge=0), ledger=()))
    assert [problem for problem in store.ledger.prove().problems if "never settled" in problem]


def test_an_account_that_never_was_is_empty(store: Store) -> None:
    assert store.ledger.account("nobody") == CreditAccount(user="nobody")
    assert store.ledger.users() == []


def with_room(job: Job, *, need: int, cap: int) -> Write:
    waiting = Write(job=job, due_in=60.0)
    room = DailyCapCheck(user="ann", job_id=job.id, need=MicroDollars(need), cap=MicroDollars(cap), otherwise=waiting)
    return Write(job=replace(job, state=State.PROVISIONING, attempt=1), ledger=(room,))


def test_a_job_that_would_go_above_the_day_s_cap_stays_in_the_queue(store: Store) -> None:
    """Each is expected to cost 360,000, which counts from its claim on."""
    for name, state in (("first", State.PROVISIONING), ("second", State.PROVISIONING), ("third", State.QUEUED)):
        lease = claimed(store, name)
        store.leases.settle(lease, with_room(lease.job, need=360_000, cap=1_000_000))
        assert store.jobs.get(name).state is state


def test_what_ended_more_than_a_day_ago_no_longer_counts(open_store: Callable[..., Store]) -> None:
    store = open_store()
    lease = store.leases.record(lease := claimed(store, "first"), with_room(lease.job, need=360_000, cap=500_000))
    line = CostLine(
        rental_label="sm-1", job_id="first", kind="gpu", rate_per_hour=MicroDollars(360_000),
        started_at=store.now(), ended_at=store.now(), amount=MicroDollars(400_000), source="estimate",
    )  # fmt: skip
    over = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    store.leases.settle(lease, Write(job=over, due_in=None, costs=(line,)))
    lease = store.leases.record(lease := claimed(store, "second"), with_room(lease.job, need=360_000, cap=500_000))
    assert lease.job.state is State.QUEUED
    tomorrow = open_store(later=DAY + 60)
    tomorrow.leases.settle(lease, with_room(lease.job, need=360_000, cap=500_000))
    assert store.jobs.get("second").state is State.PROVISIONING


@pytest.mark.parametrize("owner", ["ann", None])
def test_what_a_removed_job_cost_counts_for_the_rest_of_the_day(
    open_store: Callable[..., Store], owner: str | None
) -> None:
    store, user = open_store(), owner or SINGLE_USER
    store.jobs.submit(spec("first", owner=owner))
    (lease,) = store.leases.claim("worker", limit=1, seconds=60)
    line = CostLine(
        rental_label="sm-1", job_id="first", kind="gpu", rate_per_hour=MicroDollars(360_000),
        started_at=store.now(), ended_at=store.now(), amount=MicroDollars(400_000), source="estimate",
    )  # fmt: skip
    over = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    store.leases.settle(lease, Write(job=over, due_in=None, costs=(line,)))
    store.jobs.remove("first")
    assert store.ledger.committed_today(user) == 400_000
    assert store.ledger.committed_today("bob") == 0
    assert open_store(later=DAY + 60).ledger.committed_today(user) == 0


def test_two_at_once_do_not_share_the_last_room_of_a_day(open_store: Callable[..., Store]) -> None:
    store = open_store()
    leases = [claimed(store, f"job-{number}") for number in range(8)]
    stores = [open_store() for _ in range(4)]

    def work(number: int) -> None:
        for lease in leases[number::4]:
            stores[number].leases.settle(lease, with_room(lease.job, need=360_000, cap=1_000_000))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    states = [store.jobs.get(lease.job.id).state for lease in leases]
    assert states.count(State.PROVISIONING) == 2
