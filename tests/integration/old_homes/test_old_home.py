"""A home of an earlier version opens with this one, and every job in it goes on: with SQLite and with PostgreSQL.

The fixtures were made by that version's own code and are never made anew: see tests/fixtures/old_homes/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stationmaster.cli.job_lines import view_lines
from stationmaster.cli.render import job_json
from stationmaster.control.worker.background import WorkerLock
from stationmaster.event_sentences import sentence
from stationmaster.files import sha256_of
from stationmaster.model import Job, Outcome, Reason, State
from stationmaster.store.engine import Database
from stationmaster.store.schema import HEAD
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.commands.cli_runs import Home
from tests.support.jobs.local_world import LocalWorld
from tests.support.old_homes import OldHome

VERSION = "0003"
USER = "ann"
GIVEN = 20_000_000
TROUBLE = {"internal_error", "release", "silence", "provisioning", "parked", "unknown_state"}
MEMORIES = "memory-"  # jobs that nobody works on: each has notes that some handler made
KEYS = 56  # that a memory could have; all of them are there
ENDED = {
    "ended-completed": (Outcome.COMPLETED, Reason.FINISHED, 1),
    "ended-stopped": (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER, 1),
    "ended-failed": (Outcome.FAILED, Reason.STEP_FAILED, 1),
    "ended-cancelled": (Outcome.CANCELLED, Reason.CANCELLED_BY_USER, 1),
    "ended-in-the-queue": (Outcome.CANCELLED, Reason.CANCELLED_BY_USER, 0),
    "ended-paid": (Outcome.COMPLETED, Reason.FINISHED, 1),
}
PAID = ("queued-paid", "executing-paid", "releasing-paid", "ended-paid")
A_FEW = 6
FINISHED = (Outcome.COMPLETED, Reason.FINISHED, 1)
GOES_ON = {
    "queued": FINISHED,
    "queued-paid": FINISHED,
    "provisioning-asked": FINISHED,
    "provisioning-rented": FINISHED,
    "transferring": FINISHED,
    "executing": FINISHED,
    "executing-paid": FINISHED,
    "executing-asked": FINISHED,
    "executing-tripped": FINISHED,
    "executing-sick": FINISHED,
    "executing-lost": (Outcome.COMPLETED, Reason.FINISHED, 2),
    "executing-stop": (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER, 1),
    "executing-cancelled": (Outcome.CANCELLED, Reason.CANCELLED_BY_USER, 1),
    "fetching": FINISHED,
    "fetching-half": FINISHED,
    "fetching-failed-step": (Outcome.FAILED, Reason.STEP_FAILED, 1),
    "fetching-parked": (Outcome.FAILED, Reason.FETCH_FAILED, 1),
    "finalizing": FINISHED,
    "finalizing-catalogued": FINISHED,
    "releasing": FINISHED,
    "releasing-asked": FINISHED,
    "releasing-paid": FINISHED,
    "releasing-further": (Outcome.COMPLETED, Reason.FINISHED, 2),
    "second-attempt": (Outcome.COMPLETED, Reason.FINISHED, 2),
}


@pytest.fixture
def old(tmp_path: Path) -> OldHome:
    return OldHome(VERSION, tmp_path / "home")


@pytest.fixture(params=["sqlite", "postgresql"])
def put_store_back(request: pytest.FixtureRequest, old: OldHome) -> Callable[[], str]:
    """Gives the URL of the old store in either engine, untouched by this version."""
    if request.param == "sqlite":
        return old.put_sqlite_back
    empty = str(request.getfixturevalue("postgres_server").new_database())
    return partial(old.put_postgresql_back, empty)


ALL_JOBS_ON_POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.slow)
"""Two dozen trainings once more: here the engines differ in how they read and write a job, which other tests show."""


@pytest.fixture
def url(put_store_back: Callable[[], str]) -> str:
    return put_store_back()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(Database(url)) as database, closing(Store(database)) as store:
        yield store


def memories(url: str) -> dict[str, Any]:
    """Every job's memory as it lies in the store, read without the code that knows what is in it."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT id, memory FROM jobs")).all()
        return {str(job_id): json.loads(memory) for job_id, memory in rows}
    finally:
        engine.dispose()


def test_the_store_brings_itself_up_to_date_and_every_job_is_read(url: str, store: Store) -> None:
    jobs = {job.id: job for job in store.jobs.listed(with_ended=True, limit=1000)}
    assert jobs.keys() == memories(url).keys()
    assert {job.state for job in jobs.values()} == set(State)
    assert len({key for memory in memories(url).values() for key in memory}) == KEYS
    assert {name for name in jobs if not name.startswith(MEMORIES)} == ENDED.keys() | GOES_ON.keys()
    for name, expected in ENDED.items():
        assert _ending(jobs[name]) == expected
    with store.database.read() as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one() == HEAD
    assert store.ledger.prove().problems == ()


def test_writing_a_job_back_keeps_everything_that_its_memory_says(url: str, store: Store) -> None:
    before = memories(url)
    with store.database.write() as connection:
        due = sa.text("UPDATE jobs SET due_at = 0, lease_owner = NULL, lease_until = NULL")
        connection.execute(due)
    leases = store.leases.claim("another", limit=1000, seconds=1000.0)
    assert {lease.job.id for lease in leases} == before.keys()
    for lease in leases:
        store.leases.settle(lease, Write(job=lease.job, due_in=None))
    after = memories(url)
    for name, memory in before.items():
        assert after[name] == memory, name


@pytest.mark.timeout(1200)  # two dozen trainings, on a computer that may be busy with others
@pytest.mark.parametrize("put_store_back", ["sqlite", ALL_JOBS_ON_POSTGRESQL], indirect=True)
def test_every_job_goes_on_to_its_end(old: OldHome, put_store_back: Callable[[], str], tmp_path: Path) -> None:
    old.put_files_back()
    settings = {"STATIONMASTER_BILLING__ENABLED": "true", "STATIONMASTER_DATABASE_URL": put_store_back()}
    with LocalWorld(tmp_path, **settings) as world:
        world.may_trip = True  # one of the jobs had tripped with the old version, and is well again with this one
        for left in range(len(GOES_ON) - A_FEW, -1, -A_FEW):  # the patience of a wait is for a few jobs, not for all
            world.work_until(partial(_has_at_most, world.store, left), what=f"only {left} jobs are left")
        ended = {name: world.store.jobs.get(name) for name in GOES_ON}
        assert {name: _ending(job) for name, job in ended.items()} == GOES_ON, _failures(world.store)
        assert world.store.rentals.not_gone() == []
        assert [path.name for path in (old.home / "machines").iterdir() if not path.name.startswith(".")] == []
        assert not {alert.kind for alert in world.store.alerts.open()} & TROUBLE
        _check_models(world.store, old.home)
        _check_credits(world.store)


def test_people_can_look_at_everything_in_it(old: OldHome, tmp_path: Path) -> None:
    """By commands, and every job as the documents that the commands print and the API answers with."""
    old.put_files_back()
    url = old.put_sqlite_back()
    names = set(memories(url))
    with Home(tmp_path) as home, as_its_worker(home.path):
        shown = home.run("jobs", "--all", "--limit", "1000", "--json")
        assert {job["id"] for job in shown.json()} == names
        for words in (("jobs",), ("costs",), ("costs", "--json"), ("models", "list")):
            assert home.run(*words).code == 0
        for name in ("queued", "transferring", "executing-lost", "fetching-parked", "finalizing", "ended-paid"):
            assert name in home.run("show", name, "--events").out
        told = home.run("show", "executing", "--json")
        assert (told.code, told.json()["id"]) == (0, "executing"), told.err
        models = {model["job_id"] for model in home.run("models", "list", "--json").json()}
        assert models >= {"ended-completed", "ended-paid", "ended-stopped", "releasing"}
    with LocalWorld(tmp_path) as world:
        for name in names:
            view, history = world.station.jobs.view(name), world.station.events.of_job(name)
            assert job_json(view, history)["id"] == name
            assert view_lines(view, whole=True)
            assert all(sentence(event.kind, event.payload) for event in history)


@contextmanager
def as_its_worker(home: Path) -> Iterator[None]:
    """Whoever looks finds a worker that does nothing: this is about looking, not about two dozen trainings."""
    lock = WorkerLock(home)
    assert lock.take(log=home / "worker.log")
    try:
        yield
    finally:
        lock.release()


def _ending(job: Job) -> tuple[Outcome | None, Reason | None, int]:
    return job.outcome, job.reason, job.attempt


def _failures(store: Store) -> str:
    """Why attempts failed, for whoever reads that a job ended otherwise."""
    told = ((name, event) for name in GOES_ON for event in store.events.of_job(name))
    return "\n".join(f"{name}: {dict(event.payload)}" for name, event in told if event.kind == "attempt_failed")


def _has_at_most(store: Store, left: int) -> bool:
    """Whether at most so many jobs have not ended, of those that anybody works on."""
    return sum(not job.id.startswith(MEMORIES) for job in store.jobs.listed(with_ended=False, limit=1000)) <= left


def _check_models(store: Store, home: Path) -> None:
    """Whatever completed, or was stopped with something to keep, has its model at home and in the catalogue."""
    with_model = [name for name, (outcome, _, _) in GOES_ON.items() if outcome is Outcome.COMPLETED]
    for name in (*with_model, "executing-stop"):
        model = store.models.of_job(name)
        assert model is not None, name
        assert sha256_of(home / "jobs" / name / "model.safetensors") == model.sha256


def _check_credits(store: Store) -> None:
    """Each attempt that was paid for is settled, once, and nothing is held any more."""
    assert store.ledger.prove().problems == ()
    account = store.ledger.account(USER)
    settled = [event for name in PAID for event in store.events.of_job(name) if event.kind == "settled"]
    assert sorted(event.job_id for event in settled) == sorted(PAID)
    charged = sum(event.payload["charged"] for event in settled)
    assert 0 < charged < GIVEN
    assert (account.balance, account.held) == (GIVEN - charged, 0)
