"""The store's smaller nouns: logs, alerts, periodic work, watchers, costs, checkpoints, and waking."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stationmaster.errors import LeaseLost, StoreError
from stationmaster.model import Alert, Checkpoint, CostLine, LogChunk, State
from stationmaster.money import MicroDollars
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import spec

CAP = 1000


def lease_on(store: Store, job_id: str = "a") -> Lease:
    store.jobs.submit(spec(job_id))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    return lease


def chunk(data: bytes, *, start: int = 0) -> LogChunk:
    return LogChunk(attempt=1, stream="1.1", start=start, end=start + len(data), data=data)


def test_a_log_is_read_as_it_was_written_and_page_by_page(store: Store) -> None:
    lease = lease_on(store)
    lines = [f"line {number}\r\n".encode() + bytes([number]) for number in range(5)]
    for line in lines:
        store.leases.record(lease, Write(job=lease.job, logs=(chunk(line), chunk(b""))))
    pieces = store.logs.of_job("a")
    assert b"".join(piece.data for _, piece in pieces) == b"".join(lines) == b"".join(store.logs.text("a"))
    after = pieces[3][0]
    assert store.logs.of_job("a", after_seq=after) == pieces[4:]
    assert len(store.logs.of_job("a", limit=2)) == 2


@pytest.mark.parametrize("count", [0, 499, 500, 501])
def test_a_log_is_read_whole_however_its_pieces_fill_the_pages(store: Store, count: int) -> None:
    lease = lease_on(store)
    pieces = tuple(chunk(b"%d\n" % number, start=number) for number in range(count))
    other = replace(chunk(b"of another attempt"), attempt=2)
    store.leases.record(lease, Write(job=lease.job, logs=(*pieces, other)))
    assert list(store.logs.chunks("a", attempt=1)) == list(pieces)
    assert list(store.logs.chunks("a", attempt=2)) == [other]
    assert list(store.logs.text("a")) == [piece.data for piece in (*pieces, other)]


def test_a_flood_is_cut_at_the_cap_and_the_log_says_so_once(open_store: Callable[..., Store]) -> None:
    store = open_store(log_cap_bytes=CAP)
    lease = lease_on(store)
    for number in range(10):
        store.leases.record(lease, Write(job=lease.job, logs=(chunk(b"x" * 150, start=number * 150),) * 2))
    text = b"".join(store.logs.text("a"))
    assert text.count(b"[stationmaster] the log exceeds 1000 bytes") == 1
    assert text.endswith(b"the rest is not stored here\n")
    assert CAP <= len(text) < CAP + 400


def test_one_job_s_flood_does_not_cut_another_s_log(open_store: Callable[..., Store]) -> None:
    store = open_store(log_cap_bytes=CAP)
    loud, quiet = lease_on(store, "a"), lease_on(store, "b")
    store.leases.record(loud, Write(job=loud.job, logs=(chunk(b"x" * 2 * CAP),)))
    store.leases.record(quiet, Write(job=quiet.job, logs=(chunk(b"all is well"),)))
    assert b"".join(store.logs.text("b")) == b"all is well"


def test_an_alert_is_raised_once_until_it_is_cleared(store: Store) -> None:
    lease = lease_on(store)
    alert = Alert(kind="silence", message="no answer", job_id="a")
    for _ in range(3):
        store.leases.record(lease, Write(job=lease.job, alerts=(alert, replace(alert, message="still none"))))
    assert [found.message for found in store.alerts.open("a")] == ["no answer"]
    store.leases.record(lease, Write(job=lease.job, cleared_alerts=("silence", "provisioning")))
    assert store.alerts.open("a") == []
    store.leases.record(lease, Write(job=lease.job, alerts=(alert,)))
    assert len(store.alerts.open("a")) == 1


def test_alerts_of_other_jobs_and_kinds_stay_open(store: Store) -> None:
    lease = lease_on(store)
    for alert in (
        Alert(kind="x", message="1", job_id="a"),
        Alert(kind="y", message="2", job_id="a"),
        Alert(kind="x", message="3", job_id="b"),
        Alert(kind="x", message="4"),
        Alert(kind="x", message="5"),
    ):
        store.alerts.raise_without_lease(alert)
    store.leases.record(lease, Write(job=lease.job, cleared_alerts=("x",)))
    assert [alert.message for alert in store.alerts.open()] == ["2", "3", "4"]


def test_periodic_work_is_done_by_one_and_due_again_later(store: Store, open_store: Callable[..., Store]) -> None:
    token = store.periodic.claim("sweep", "one", seconds=20)
    assert token is not None
    assert store.periodic.claim("sweep", "two", seconds=20) is None
    assert store.periodic.claim("other", "two", seconds=20) is not None
    store.periodic.finish("sweep", token, again_in=300)
    assert store.periodic.claim("sweep", "two", seconds=20) is None
    assert open_store(later=301).periodic.claim("sweep", "two", seconds=20) is not None


def test_periodic_work_of_a_worker_that_died_is_taken_over(store: Store, open_store: Callable[..., Store]) -> None:
    token = store.periodic.claim("sweep", "one", seconds=20)
    assert token is not None
    assert open_store(later=21).periodic.claim("sweep", "two", seconds=20) is not None
    with pytest.raises(LeaseLost):
        store.periodic.finish("sweep", token, again_in=300)


def test_many_who_begin_the_same_periodic_work_at_once_get_one_token(open_store: Callable[..., Store]) -> None:
    stores = [open_store() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for number in range(5):
            claims = threads.map(lambda each, n=number: each.periodic.claim(f"work {n}", "w", seconds=20), stores)
            assert sum(token is not None for token in claims) == 1


def test_a_watcher_wakes_a_running_job_and_expires(store: Store, open_store: Callable[..., Store]) -> None:
    lease = lease_on(store)
    store.leases.settle(lease, Write(job=replace(lease.job, state=State.EXECUTING), due_in=60.0))
    assert not store.watchers.is_watched("a")
    store.watchers.register("a", "me", seconds=10)
    assert store.watchers.is_watched("a")
    assert not open_store(later=11).watchers.is_watched("a")
    assert len(store.leases.claim("w", limit=1, seconds=20)) == 1


def test_a_watcher_does_not_wake_a_job_that_waits_for_something_else(store: Store) -> None:
    lease = lease_on(store)
    store.leases.settle(lease, Write(job=replace(lease.job, state=State.PROVISIONING), due_in=60.0))
    store.watchers.register("a", "me", seconds=10)
    assert store.leases.claim("w", limit=1, seconds=20) == []


def test_cost_lines_and_checkpoints_are_replaced_by_their_key(store: Store) -> None:
    lease = lease_on(store)
    line = CostLine(
        rental_label="l",
        job_id="a",
        kind="gpu",
        rate_per_hour=MicroDollars(360_000),
        started_at=1.0,
        ended_at=None,
        amount=MicroDollars(0),
        source="estimate",
    )
    file = Checkpoint(attempt=1, path="output/a", kind="checkpoint", size=1, step=5)
    store.leases.record(lease, Write(job=lease.job, costs=(line,), checkpoints=(file,)))
    closed, safe = replace(line, ended_at=11.0, amount=MicroDollars(1000)), replace(file, sha256="f", verified_at=2.0)
    other = replace(line, kind="disk")
    store.leases.record(lease, Write(job=lease.job, costs=(closed, other), checkpoints=(safe,)))
    assert sorted(store.costs.of_job("a"), key=lambda each: each.kind) == [other, closed]
    assert store.checkpoints.of_job("a") == [safe]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    unread=st.dictionaries(
        st.text(max_size=8).map("x-{}".format),
        st.recursive(
            st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=4,
    )
)
def test_what_newer_code_keeps_of_a_job_comes_back_as_it_was(store: Store, unread: dict[str, object]) -> None:
    store.jobs.submit(spec("a"))
    lease = Lease(job=store.jobs.get("a"), token=0, now=0.0)
    if _has_nul(unread):
        return  # PostgreSQL's text cannot hold it; nothing of ours writes it
    store.leases.record(lease, Write(job=replace(lease.job, unread=unread)))
    assert store.jobs.get("a").unread == unread


def _has_nul(value: object) -> bool:
    return "\\u0000" in ascii(value) or "\\x00" in ascii(value) or "\\ud" in ascii(value)


def test_somebody_who_waits_is_woken_by_a_write(store: Store, open_store: Callable[..., Store]) -> None:
    writer = open_store()
    with store.waker() as waker, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(waker.wait, 30.0)
        writer.jobs.submit(spec("a"))
        assert waiting.result(timeout=150)


def test_nobody_is_woken_by_nothing(store: Store) -> None:
    with store.waker() as waker:
        assert not waker.wait(0.01)
        store.jobs.listed(with_ended=True)
        assert not waker.wait(0.01)


def test_a_write_before_the_wait_is_not_missed(store: Store, open_store: Callable[..., Store]) -> None:
    with store.waker() as waker:
        open_store().jobs.submit(spec("a"))
        assert waker.wait(30.0)


def test_a_waiting_connection_that_is_cut_says_that_the_store_is_lost(postgres_url: str) -> None:
    database = Database(postgres_url)
    store = Store(database)
    try:
        with store.waker() as waker, ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(waker.wait, 30.0)
            _cut_all_others(postgres_url)
            with pytest.raises(StoreError):
                waiting.result(timeout=150)
    finally:
        store.close()


def test_a_store_whose_connections_were_cut_goes_on_with_new_ones(postgres_url: str) -> None:
    store = Store(Database(postgres_url))
    try:
        store.jobs.submit(spec("a"))
        _cut_all_others(postgres_url)
        assert store.jobs.get("a").id == "a"
    finally:
        store.close()


def _cut_all_others(url: str) -> None:
    plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "  # waits until they are gone
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_what_the_provider_billed_never_changes_and_a_closed_line_is_not_opened_again(store: Store) -> None:
    opened = CostLine(
        rental_label="sm-1",
        job_id="a",
        kind="gpu",
        rate_per_hour=MicroDollars(360_000),
        started_at=1.0,
        ended_at=None,
        amount=MicroDollars(0),
        source="estimate",
    )
    closed = replace(opened, ended_at=11.0, amount=MicroDollars(1_000))
    billed = replace(closed, amount=MicroDollars(1_234), source="provider")
    for line in (opened, closed, opened):
        store.costs.put_without_lease(line)
    assert store.costs.of_job("a") == [closed]
    store.costs.reconcile([billed])
    store.costs.put_without_lease(closed)
    assert store.costs.of_job("a") == [billed]
