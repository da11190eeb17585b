"""Leases: who works on which job, and that nobody else's writes count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.errors import LeaseLost
from stationmaster.model import (
    Alert,
    BadMachine,
    Checkpoint,
    CostLine,
    Desired,
    Job,
    LogChunk,
    Outcome,
    Progress,
    Reason,
    Rental,
    RentalState,
    RentedMachine,
    Setbacks,
    State,
    StepReading,
)
from stationmaster.money import MicroDollars
from stationmaster.store.leases import MONITOR_OWNER, Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent, Write
from tests.contract.store.test_messages import message
from tests.support.jobs.spine_values import rental, requested, spec

_SECONDS = 20.0


def claim_one(store: Store, owner: str = "one", **options: Any) -> Lease:
    (lease,) = store.leases.claim(owner, limit=1, seconds=_SECONDS, **options)
    return lease


def claim(store: Store, owner: str = "one", *, limit: int = 10, **options: Any) -> list[str]:
    return sorted(lease.job.id for lease in store.leases.claim(owner, limit=limit, seconds=_SECONDS, **options))


def everything(job: Job) -> Write:
    """A write that touches every table."""
    return Write(
        job=replace(
            job,
            state=State.EXECUTING,
            state_since=5.0,
            attempt=2,
            failed_before_login=1,
            failed_after_login=2,
            deadline_at=99.0,
            unreachable_since=7.0,
            seen_seq=3,
            progress=Progress(step=4, total_steps=9, loss=0.5),
            setbacks=Setbacks(failures=2),
            unread={"nested": {"a": [1, None, "ü"]}},
        ),
        due_in=30.0,
        rentals=(rental(job_id=job.id),),
        costs=(
            CostLine(
                rental_label="x",
                job_id=job.id,
                kind="gpu",
                rate_per_hour=MicroDollars(360_000),
                started_at=1.0,
                ended_at=None,
                amount=MicroDollars(0),
                source="estimate",
            ),
        ),
        events=(NewEvent(kind="state", payload={"to": "EXECUTING"}), NewEvent(kind="note", payload={"text": "ü"})),
        logs=(LogChunk(attempt=1, stream="1.1", start=0, end=3, data=b"abc"),),
        readings=(StepReading(attempt=1, at=1.0, step=4, loss=0.5),),
        checkpoints=(Checkpoint(attempt=1, path="output/a.safetensors", kind="checkpoint", size=3, step=4),),
        alerts=(Alert(kind="silence", message="no answer", job_id=job.id),),
    )


def test_words_from_outside_are_stored_whatever_is_in_them(store: Store) -> None:
    """Half a character or a NUL must not keep a job from being written, while its machine bills."""
    odd = "caf\udce9 \0 ☃"
    store.jobs.submit(spec("a"))
    lease = claim_one(store)
    write = Write(
        job=replace(lease.job, explanation=odd, machine=RentedMachine(login_problem=odd)),
        due_in=0.0,
        events=(NewEvent(kind="note", payload={"text": odd}),),
        alerts=(Alert(kind="odd", job_id="a", message=odd),),
        bad_machines=(BadMachine(provider="fake", machine_id="m", why=odd),),
    )
    store.leases.settle(lease, write)
    job = store.jobs.get("a")
    assert (job.explanation, job.machine.login_problem) == ("caf? ? ☃", odd)
    assert store.events.of_job("a")[-2].payload == {"text": odd}
    assert [alert.message for alert in store.alerts.open()] == ["caf? ? ☃"]


def picture(store: Store, job_id: str) -> tuple[object, ...]:
    """Everything the store says of a job."""
    return (
        store.jobs.get(job_id),
        store.rentals.of_job(job_id),
        store.costs.of_job(job_id),
        store.events.of_job(job_id),
        store.logs.of_job(job_id),
        store.readings.of_job(job_id),
        store.checkpoints.of_job(job_id),
        store.alerts.open(job_id),
    )


def test_a_due_job_is_claimed_once(store: Store) -> None:
    store.jobs.submit(spec("a"))
    assert claim(store) == ["a"]
    assert claim(store, "two") == []


def test_no_more_than_the_limit_is_claimed_and_the_longest_due_first(store: Store) -> None:
    for name in ("a", "b", "c"):
        store.jobs.submit(spec(name))
    assert claim(store, limit=2) == ["a", "b"]
    assert claim(store, limit=2) == ["c"]


def test_only_states_and_providers_that_are_asked_for_are_claimed(store: Store) -> None:
    store.jobs.submit(spec("a", provider="busy"))
    store.jobs.submit(spec("b"))
    assert claim(store, states=(State.EXECUTING,)) == []
    assert claim(store, excluded_providers=("busy",)) == ["b"]
    assert claim(store, states=(State.QUEUED,)) == ["a"]


def test_a_job_of_a_provider_that_a_worker_does_not_have_is_left_for_another_one(store: Store) -> None:
    for name, provider in (("a", "vastai"), ("b", "loopback"), ("c", "adopted:box")):
        store.jobs.submit(spec(name, provider=provider))
    assert store.jobs.of_other_providers(("loopback",)) == [("a", "vastai")]
    assert claim(store, providers=("loopback",)) == ["b", "c"], "an adopted training runs on any host"
    assert claim(store, providers=("loopback",)) == []
    assert store.jobs.seconds_until_due(providers=("mars",)) != 0.0, "a worker does not spin on the others"
    assert claim(store, "other", providers=("vastai", "loopback")) == ["a"]


def test_a_job_that_no_worker_serves_can_be_cancelled(store: Store) -> None:
    store.jobs.submit(spec("a", provider="vastai"))
    assert claim(store, providers=()) == []
    store.jobs.desire("a", Desired.CANCEL)
    assert claim(store, providers=()) == ["a"]


def test_a_job_is_left_alone_until_it_is_due(store: Store, open_store: Callable[..., Store]) -> None:
    store.jobs.submit(spec("a"))
    lease = claim_one(store)
    store.leases.settle(lease, Write(job=lease.job, due_in=60.0))
    assert claim(store) == []
    assert claim(open_store(later=61)) == ["a"]


def test_a_job_without_a_due_time_waits_for_a_wish(store: Store, open_store: Callable[..., Store]) -> None:
    store.jobs.submit(spec("a"))
    lease = claim_one(store)
    store.leases.settle(lease, Write(job=lease.job, due_in=None))
    assert claim(open_store(later=1e6)) == []
    store.jobs.desire("a", Desired.STOP)
    assert claim(store) == ["a"]


def test_everything_written_is_read_again(store: Store) -> None:
    store.jobs.submit(spec("a", trigger="ühwx", parameters={"steps": 3, "rate": 0.5, "on": True, "note": None}))
    lease = claim_one(store)
    written = everything(lease.job)
    store.leases.settle(lease, written)
    job = store.jobs.get("a")
    assert replace(job, due_at=None) == replace(written.job, version=4, due_at=None, lease_until=None)
    assert job.due_at is not None
    assert job.due_at - store.now() == pytest.approx(30.0, abs=5.0)
    assert store.rentals.of_job("a") == list(written.rentals)
    assert store.costs.of_job("a") == list(written.costs)
    assert [event.kind for event in store.events.of_job("a")] == ["submitted", "state", "note", "alert"]
    assert [chunk for _, chunk in store.logs.of_job("a")] == list(written.logs)
    assert store.readings.of_job("a") == list(written.readings)
    assert store.checkpoints.of_job("a") == list(written.checkpoints)
    assert [alert.kind for alert in store.alerts.open("a")] == ["silence"]


def test_a_record_keeps_the_lease_and_a_settlement_gives_it_back(store: Store) -> None:
    store.jobs.submit(spec("a"))
    lease = claim_one(store)
    store.leases.record(lease, Write(job=replace(lease.job, setbacks=Setbacks(failures=1))))
    assert claim(store, "two") == []
    store.leases.settle(lease, Write(job=replace(lease.job, setbacks=Setbacks(failures=2))))
    assert claim(store, "two") == ["a"]


def test_a_lease_given_back_leaves_the_job_as_it_was(store: Store) -> None:
    before = store.jobs.submit(spec("a")).job
    store.leases.free(claim_one(store))
    assert store.jobs.get("a") == before
    assert claim(store, "two") == ["a"]


def test_a_worker_that_goes_home_hands_back_its_own_leases_only(store: Store) -> None:
    for name in ("a", "b", "c"):
        store.jobs.submit(spec(name))
    claim(store, "one", limit=2)
    claim(store, "two", limit=1)
    store.leases.free_all_of("one")
    assert claim(store, "three") == ["a", "b"]


def test_the_only_worker_of_a_store_waits_for_no_lease_of_the_last_one(store: Store) -> None:
    """A monitor is no worker: it goes on sending its messages."""
    store.jobs.submit(spec("a"))
    old = claim_one(store)
    sweep = store.periodic.claim("sweep", "one", seconds=_SECONDS)
    store.outbox.add([message("stall"), message("machine")])
    (stall,) = store.outbox.claim("one", limit=1, seconds=_SECONDS)
    (machine,) = store.outbox.claim(f"{MONITOR_OWNER}host-1", limit=1, seconds=_SECONDS)
    store.leases.free_all()
    assert claim(store, "two") == ["a"]
    assert store.periodic.claim("sweep", "two", seconds=_SECONDS) is not None
    assert [each.id for each in store.outbox.claim("two", limit=2, seconds=_SECONDS)] == [stall.id]
    store.outbox.mark_sent(machine, "inbox")
    with pytest.raises(LeaseLost):
        store.outbox.mark_sent(stall, "inbox")
    with pytest.raises(LeaseLost):
        store.leases.settle(old, Write(job=old.job))
    assert sweep is not None
    with pytest.raises(LeaseLost):
        store.periodic.finish("sweep", sweep, again_in=300)


def test_an_expired_lease_is_taken_over_with_a_new_token(store: Store, open_store: Callable[..., Store]) -> None:
    store.jobs.submit(spec("a"))
    old = claim_one(store)
    later = open_store(later=_SECONDS + 1)
    new = claim_one(later, "two")
    assert new.token > old.token
    assert claim(store, "three") == []


@pytest.mark.parametrize("verb", ["record", "settle"])
def test_a_worker_that_lost_its_lease_changes_nothing_at_all(
    store: Store, open_store: Callable[..., Store], verb: str
) -> None:
    store.jobs.submit(spec("a"))
    old = claim_one(store)
    claim_one(open_store(later=_SECONDS + 1), "two")
    before = picture(store, "a")
    with pytest.raises(LeaseLost):
        getattr(store.leases, verb)(old, everything(old.job))
    assert picture(store, "a") == before


def test_a_stale_give_back_does_not_free_the_new_holder_s_lease(store: Store, open_store: Callable[..., Store]) -> None:
    store.jobs.submit(spec("a"))
    old = claim_one(store)
    claim_one(open_store(later=_SECONDS + 1), "two")
    store.leases.free(old)
    store.leases.free_all_of("one")
    assert claim(store, "three") == []


def test_a_settled_lease_cannot_be_used_again_once_the_job_is_somebody_else_s(store: Store) -> None:
    store.jobs.submit(spec("a"))
    old = claim_one(store)
    store.leases.settle(old, Write(job=old.job))
    claim_one(store, "two")
    with pytest.raises(LeaseLost):
        store.leases.settle(old, Write(job=old.job))


def test_a_renewal_prolongs_what_is_held_and_tells_what_is_wanted(
    store: Store, open_store: Callable[..., Store]
) -> None:
    for name in ("a", "b"):
        store.jobs.submit(spec(name))
    leases = {lease.job.id: lease for lease in store.leases.claim("one", limit=2, seconds=_SECONDS)}
    store.leases.record(leases["b"], Write(job=replace(leases["b"].job, deadline_at=1.0)))
    store.jobs.desire("a", Desired.STOP)
    renewed = store.leases.renew("one", ["a", "b"], seconds=100.0)
    assert {name: found.token for name, found in renewed.items()} == {n: held.token for n, held in leases.items()}
    assert (renewed["a"].desired_seq, renewed["b"].desired_seq) == (1, 0)
    assert (renewed["a"].deadline_passed, renewed["b"].deadline_passed) == (False, True)
    assert claim(open_store(later=_SECONDS + 1), "two") == []


def test_a_lease_that_its_worker_no_longer_knows_of_runs_out(store: Store, open_store: Callable[..., Store]) -> None:
    """A settlement that failed, or a process that slept, leaves such a lease: renewing it would keep it for ever."""
    for name in ("a", "b"):
        store.jobs.submit(spec(name))
    claim(store)
    assert store.leases.renew("one", ["b"], seconds=100.0).keys() == {"b"}
    assert claim(open_store(later=_SECONDS + 1), "two") == ["a"]


def test_a_renewal_leaves_out_what_was_taken_over(store: Store, open_store: Callable[..., Store]) -> None:
    store.jobs.submit(spec("a"))
    claim_one(store)
    claim_one(open_store(later=_SECONDS + 1), "two")
    assert store.leases.renew("one", ["a"], seconds=_SECONDS) == {}


def test_many_workers_at_once_never_get_the_same_job(store: Store) -> None:
    names = [f"job{number:02d}" for number in range(40)]
    for name in names:
        store.jobs.submit(spec(name))

    def work(owner: str) -> list[str]:
        taken: list[str] = []
        while claimed := claim(store, owner, limit=3):
            assert len(claimed) <= 3
            taken += claimed
        return taken

    with ThreadPoolExecutor(4) as threads:
        taken = [name for names in threads.map(work, ("w1", "w2", "w3", "w4")) for name in names]
    assert Counter(taken) == Counter(names)


def test_the_store_itself_refuses_a_second_live_rental_of_a_job(store: Store) -> None:
    store.jobs.submit(spec("job"))
    lease = claim_one(store)
    store.leases.record(lease, Write(job=lease.job, rentals=(rental(),)))
    with pytest.raises(Exception, match=r"(?i)unique"):
        store.leases.record(lease, Write(job=lease.job, rentals=(requested(label="sm-ab12cd34-job-2", attempt=2),)))
    assert [found.label for found in store.rentals.of_job("job")] == [rental().label]


def test_a_rental_that_is_gone_stays_gone(store: Store) -> None:
    store.jobs.submit(spec("job"))
    lease = claim_one(store)
    gone = rental(state=RentalState.GONE, gone_at=20.0)
    store.leases.record(lease, Write(job=lease.job, rentals=(gone,)))
    store.leases.record(lease, Write(job=lease.job, rentals=(rental(state=RentalState.RELEASING),)))
    assert not store.rentals.put_without_lease(rental(state=RentalState.HELD)), "nothing was written"
    assert store.rentals.of_job("job") == [gone]
    other = rental(label="sm-ab12cd34-job-2", state=RentalState.RELEASING)
    assert store.rentals.put_without_lease(other)
    assert store.rentals.put_without_lease(replace(other, state=RentalState.GONE))
    assert store.rentals.not_gone() == []


def test_surplus_machines_may_be_many(store: Store) -> None:
    store.jobs.submit(spec("job"))
    lease = claim_one(store)
    surplus: list[Rental] = [
        rental(label=f"{rental().label}#m{n}", provider_id=f"m{n}", state=RentalState.RELEASING, surplus=True)
        for n in (2, 3)
    ]
    store.leases.record(lease, Write(job=lease.job, rentals=(rental(), *surplus)))
    assert len(store.rentals.not_gone()) == 3


def test_an_ended_job_keeps_the_time_of_its_end(store: Store) -> None:
    store.jobs.submit(spec("a"))
    lease = claim_one(store)
    ended = replace(lease.job, state=State.ENDED, outcome=Outcome.CANCELLED, reason=Reason.CANCELLED_BY_USER)
    store.leases.record(lease, Write(job=ended, due_in=None))
    first = store.jobs.get("a").ended_at
    assert first is not None
    store.leases.settle(lease, Write(job=ended, due_in=None))
    assert store.jobs.get("a").ended_at == first
