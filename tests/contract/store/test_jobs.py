"""Jobs as faces ask for them, and wishes that race with workers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import pytest
import sqlalchemy as sa

from stationmaster.control.billing.breakdown import shares_of
from stationmaster.errors import AlreadyEnded, IllegalMove, NotFound
from stationmaster.model import Alert, CostLine, Desired, LogChunk, Outcome, Reason, RentalState, Request, State
from stationmaster.money import MicroDollars
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.tables import jobs, metadata
from stationmaster.store.writes import NewEvent, Write
from tests.support.jobs.spine_values import rental, spec

_STRENGTH = [Desired.RUN, Desired.STOP, Desired.CANCEL_KEEP, Desired.CANCEL]


def end(store: Store, job_id: str, outcome: Outcome = Outcome.COMPLETED) -> None:
    (lease,) = [each for each in store.leases.claim("w", limit=50, seconds=20) if each.job.id == job_id]
    ended = replace(lease.job, state=State.ENDED, outcome=outcome, reason=Reason.FINISHED)
    store.leases.settle(lease, Write(job=ended, due_in=None, events=(NewEvent(kind="outcome"),)))


def test_the_same_id_again_gives_the_job_that_is_there(store: Store) -> None:
    first = store.jobs.submit(spec("a"))
    again = store.jobs.submit(spec("a", name="something else"))
    assert (first.created, again.created) == (True, False)
    assert again.job == first.job
    assert len(store.events.of_job("a")) == 1


def test_an_id_submitted_by_many_at_once_makes_one_job(store: Store) -> None:
    with ThreadPoolExecutor(6) as threads:
        submitted = list(threads.map(lambda _: store.jobs.submit(spec("a")), range(12)))
    assert sum(each.created for each in submitted) == 1
    assert len(store.jobs.listed(with_ended=True)) == 1
    assert [event.job_version for event in store.events.of_job("a")] == [1]


def test_a_job_is_meant_by_its_id_its_beginning_or_its_name(store: Store) -> None:
    for job_id, name in (("abc1", "x"), ("abc2", "y"), ("abc", "z"), ("q", "abc2"), ("r", "dogs"), ("s", "dogs")):
        store.jobs.submit(spec(job_id, name=name))

    def meant(text: str) -> set[str]:
        return {job.id for job in store.jobs.matching(text)}

    assert meant("abc") == {"abc"}
    assert meant("abc2") == {"abc2"}
    assert meant("ab") == {"abc", "abc1", "abc2"}
    assert meant("dogs") == {"s"}
    assert meant("nothing") == set()
    assert meant("%") == meant("_") == set()


def test_an_empty_word_means_no_job(store: Store) -> None:
    """`cancel "$JOB"` with the variable unset must not hit the only job there is."""
    store.jobs.submit(spec("only"))
    assert store.jobs.matching("") == []


def test_jobs_are_listed_newest_first_and_ended_ones_when_asked_for(store: Store) -> None:
    for name in ("a", "b", "c"):
        store.jobs.submit(spec(name))
    end(store, "b")
    assert [job.id for job in store.jobs.listed(with_ended=False)] == ["c", "a"]
    assert [job.id for job in store.jobs.listed(with_ended=True)] == ["c", "b", "a"]
    assert [job.id for job in store.jobs.listed(with_ended=True, limit=1)] == ["c"]


def test_a_job_that_is_not_there_is_not_found(store: Store) -> None:
    for ask in (store.jobs.get, store.jobs.remove, lambda name: store.jobs.desire(name, Desired.STOP)):
        with pytest.raises(NotFound):
            ask("nobody")


@pytest.mark.parametrize(("first", "second"), list(product(_STRENGTH[1:], repeat=2)))
def test_a_wish_is_never_weakened_by_a_later_one(store: Store, first: Desired, second: Desired) -> None:
    store.jobs.submit(spec("a"))
    store.jobs.desire("a", first)
    after = store.jobs.desire("a", second)
    assert after.desired is max(first, second, key=_STRENGTH.index)
    assert store.jobs.get("a").desired is after.desired


def test_no_write_of_a_worker_undoes_a_wish(store: Store) -> None:
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    store.jobs.desire("a", Desired.CANCEL)
    store.leases.settle(lease, Write(job=replace(lease.job, seen_seq=lease.job.desired_seq), due_in=1e6))
    job = store.jobs.get("a")
    assert (job.desired, job.desired_seq, job.seen_seq) == (Desired.CANCEL, 1, 0)
    assert len(store.leases.claim("w", limit=1, seconds=20)) == 1


def training(store: Store) -> Lease:
    """The only job of the store trains now."""
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    return store.leases.record(lease, Write(job=replace(lease.job, state=State.EXECUTING, state_since=1.0)))


def test_requests_are_counted_told_and_wake_a_worker(store: Store) -> None:
    store.jobs.submit(spec("a"))
    lease = training(store)
    store.jobs.ask("a", Request.SAVE)
    store.jobs.ask("a", Request.SAMPLE)
    after = store.jobs.ask("a", Request.SAVE)
    assert (after.saves_asked, after.samples_asked, after.desired) == (2, 1, Desired.RUN)
    told = [event.payload for event in store.events.of_job("a") if event.kind == "asked"]
    assert told == [{"for": "save", "number": 1}, {"for": "sample", "number": 1}, {"for": "save", "number": 2}]
    store.leases.settle(lease, Write(job=replace(lease.job, seen_seq=lease.job.desired_seq), due_in=1e6))
    assert store.jobs.get("a").saves_asked == 2, "no write of a worker undoes it"
    (again,) = store.leases.claim("w", limit=1, seconds=20)
    assert again.job.samples_asked == 1


def test_a_worker_that_writes_and_goes_on_learns_what_was_wished_and_asked_meanwhile(store: Store) -> None:
    store.jobs.submit(spec("a"))
    lease = training(store)
    store.jobs.ask("a", Request.SAVE)
    store.jobs.ask("a", Request.SAMPLE)
    after = store.leases.record(lease, Write(job=lease.job))
    # With the sequence number it is not interrupted any more, so it must know all that the number stands for.
    assert (after.job.desired_seq, after.job.saves_asked, after.job.samples_asked) == (2, 1, 1)
    store.jobs.desire("a", Desired.STOP)
    after = store.leases.record(after, Write(job=after.job))
    assert (after.job.desired_seq, after.job.desired) == (3, Desired.STOP)
    assert replace(after.job, due_at=0.0) == replace(store.jobs.get("a"), due_at=0.0)


@pytest.mark.parametrize("request_", Request)
def test_only_a_training_that_is_to_go_on_can_be_asked(store: Store, request_: Request) -> None:
    store.jobs.submit(spec("a"))
    assert store.jobs.ask("a", request_).desired_seq == 0, "nobody is disturbed before it trains"
    lease = training(store)
    assert lease.job.times_asked(request_) == 1
    store.jobs.desire("a", Desired.STOP)
    before = (store.jobs.get("a"), store.events.of_job("a"))
    with pytest.raises(IllegalMove, match="is already stopping"):
        store.jobs.ask("a", request_)
    assert (store.jobs.get("a"), store.events.of_job("a")) == before
    store.leases.settle(lease, Write(job=lease.job, due_in=0.0))
    end(store, "a")
    with pytest.raises(AlreadyEnded):
        store.jobs.ask("a", request_)
    with pytest.raises(NotFound):
        store.jobs.ask("nobody", request_)


@pytest.mark.parametrize("desired", _STRENGTH[1:])
def test_once_there_is_an_outcome_a_wish_changes_nothing(store: Store, desired: Desired) -> None:
    store.jobs.submit(spec("a"))
    end(store, "a")
    before = (store.jobs.get("a"), store.events.of_job("a"))
    with pytest.raises(AlreadyEnded, match="already COMPLETED"):
        store.jobs.desire("a", desired)
    assert (store.jobs.get("a"), store.events.of_job("a")) == before


def test_wishes_and_workers_at_once_leave_no_hole_in_the_versions(store: Store) -> None:
    """Versions are what followers go by: each is one event, and none is missing or double."""
    store.jobs.submit(spec("a"))

    def wish(_: int) -> None:
        store.jobs.desire("a", Desired.STOP)

    def work(number: int) -> None:
        for lease in store.leases.claim(f"w{number}", limit=1, seconds=20):
            seen = replace(lease.job, seen_seq=lease.job.desired_seq)
            events = (NewEvent(kind="one"), NewEvent(kind="two"))
            store.leases.record(lease, Write(job=seen, events=events[: number % 3]))
            store.leases.settle(lease, Write(job=seen, events=events))

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(action, number) for number in range(20) for action in (wish, work)]:
            done.result()
    events = store.events.of_job("a")
    job = store.jobs.get("a")
    assert [event.job_version for event in events] == list(range(1, job.version + 1))
    assert job.desired_seq == 20
    assert sum(event.kind == "desired" for event in events) == 20


def test_events_can_be_followed_by_version(store: Store) -> None:
    store.jobs.submit(spec("a"))
    store.jobs.desire("a", Desired.STOP)
    first, second = store.events.of_job("a")
    assert store.events.of_job("a", after_version=first.job_version) == [second]
    assert store.events.of_job("a", limit=1) == [first]
    assert first.payload == {"name": "cats", "recipe": "tiny-lora@1", "provider": "fake"}


def test_an_ended_job_is_forgotten_with_all_that_belongs_to_it(store: Store) -> None:
    for name in ("a", "b"):
        store.jobs.submit(spec(name))
        store.alerts.raise_without_lease(Alert(kind="x", message="y", job_id=name))
        store.watchers.register(name, "me", seconds=60)
    leases = store.leases.claim("w", limit=2, seconds=20)
    for lease in leases:
        gone = rental(label=f"l-{lease.job.id}", job_id=lease.job.id, state=RentalState.GONE)
        chunk = LogChunk(attempt=1, stream="s", start=0, end=1, data=b"x")
        ended = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED)
        store.leases.settle(lease, Write(job=ended, due_in=None, rentals=(gone,), logs=(chunk,)))
    store.jobs.remove("a")
    with store.database.read() as connection:
        for table in metadata.sorted_tables:
            if "job_id" in table.c:
                assert "a" not in connection.execute(sa.select(table.c.job_id)).scalars().all(), table.name
    assert [job.id for job in store.jobs.listed(with_ended=True)] == ["b"]
    assert len(store.logs.of_job("b")) == 1


def let_time_pass(store: Store) -> None:
    """Until the database's clock shows another moment, by which two events can be told apart."""
    began = store.now()
    while store.now() - began < 0.002:
        pass


def test_what_a_removed_job_was_paid_for_is_still_told_apart(store: Store) -> None:
    moments = ("training_started", "progress", "stall_flagged", "note", "stall_cleared", "checkpoint", "desired")
    for name in ("a", "b"):
        store.jobs.submit(spec(name))
    for lease in store.leases.claim("w", limit=2, seconds=20):
        began, job_id = store.now(), lease.job.id
        for kind in moments:
            store.leases.record(lease, Write(job=lease.job, events=(NewEvent(kind=kind, payload={"x": 1}),)))
            let_time_pass(store)
        over = NewEvent(kind="state", payload={"from": State.EXECUTING.value, "to": State.FETCHING_RESULTS.value})
        store.leases.record(lease, Write(job=lease.job, events=(over,)))
        paid = CostLine(
            rental_label=f"sm-{job_id}", job_id=job_id, kind="gpu", rate_per_hour=MicroDollars(10**9),
            started_at=began, ended_at=store.now() + 1.0, amount=MicroDollars(10**6), source="provider",
        )  # fmt: skip
        ended = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED)
        store.leases.settle(lease, Write(job=ended, due_in=None, costs=(paid,)))
    before = [shares_of(line, store.events.of_job(line.job_id), now=store.now()) for line in store.costs.listed()]
    assert all(shares.training and shares.stalled and shares.idle for shares in before)
    store.jobs.remove("a")
    lines = store.costs.listed()
    assert [shares_of(line, store.events.of_job(line.job_id), now=store.now()) for line in lines] == before
    (aside,) = {line.job_id for line in lines} - {"b"}
    assert len(store.events.of_job(aside)) == 4, "nothing else of the job is kept"
    store.jobs.submit(spec("a"))
    assert [event.kind for event in store.events.of_job("a")] == ["submitted"]


def test_the_bill_of_a_removed_job_s_machine_still_takes_the_place_of_our_estimate(store: Store) -> None:
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    gone = rental(label="sm-a", job_id="a", state=RentalState.GONE, provider_id="7")
    paid = CostLine(
        rental_label="sm-a", job_id="a", kind="gpu", rate_per_hour=MicroDollars(10**6), started_at=1.0, ended_at=2.0,
        amount=MicroDollars(278), source="estimate",
    )  # fmt: skip
    ended = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED)
    store.leases.settle(lease, Write(job=ended, due_in=None, rentals=(gone,), costs=(paid,)))
    store.jobs.remove("a")
    (line,) = store.costs.awaiting_charges(ended_before=3.0)
    found = store.rentals.by_label(line.rental_label)
    assert found is not None
    assert found.provider_id == "7"
    assert store.rentals.of_job("a") == []
    store.costs.reconcile([replace(line, amount=MicroDollars(300), source="provider")])
    assert [(line.amount, line.source) for line in store.costs.listed()] == [(300, "provider")]


def test_a_job_that_has_not_ended_is_not_forgotten(store: Store) -> None:
    store.jobs.submit(spec("a"))
    with pytest.raises(IllegalMove, match="has not ended"):
        store.jobs.remove("a")


def test_a_job_whose_machine_may_bill_is_not_forgotten(store: Store) -> None:
    store.jobs.submit(spec("job"))
    end(store, "job")
    store.rentals.put_without_lease(rental(state=RentalState.RELEASING))
    with pytest.raises(IllegalMove):
        store.jobs.remove("job")
    assert store.jobs.count_needing_a_worker() == 1
    store.rentals.put_without_lease(rental(state=RentalState.GONE, gone_at=1.0))
    assert store.jobs.count_needing_a_worker() == 0
    store.jobs.remove("job")


def rename_state(store: Store, job_id: str, state: str) -> None:
    with store.database.write() as connection:
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(state=state))


def test_a_job_in_a_state_of_newer_code_is_seen_and_left_alone(store: Store) -> None:
    store.jobs.submit(spec("new"))
    store.jobs.submit(spec("known"))
    rename_state(store, "new", "POLISHING")
    assert [str(job.state) for job in store.jobs.listed(with_ended=False)] == ["QUEUED", "POLISHING"]
    assert store.jobs.get("new").state == "POLISHING"
    assert store.jobs.unknown_states() == [("new", "POLISHING")]
    assert [lease.job.id for lease in store.leases.claim("w", limit=5, seconds=20)] == ["known"]
    store.jobs.desire("new", Desired.STOP)
    with pytest.raises(IllegalMove):
        store.jobs.remove("new")


def test_the_next_due_job_is_told_and_a_leased_one_counts_from_its_lease(
    store: Store, open_store: Callable[..., Store]
) -> None:
    assert store.jobs.seconds_until_due() is None
    store.jobs.submit(spec("a"))
    assert store.jobs.seconds_until_due() == 0
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    assert store.jobs.seconds_until_due() == pytest.approx(20, abs=5)
    store.leases.settle(lease, Write(job=lease.job, due_in=60))
    assert store.jobs.seconds_until_due() == pytest.approx(60, abs=5)
    assert open_store(later=61).jobs.seconds_until_due() == 0


def test_a_job_that_nobody_here_may_take_is_not_waited_for(store: Store) -> None:
    """Otherwise a worker would look again and again for what it can never claim."""
    store.jobs.submit(spec("new"))
    rename_state(store, "new", "POLISHING")
    store.jobs.submit(spec("busy", provider="busy"))
    assert store.jobs.seconds_until_due(excluded_providers=("busy",)) is None
    assert store.jobs.seconds_until_due() == 0
