"""Random histories of credits, with workers that die before or after their commits and try again: it always adds up."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stationmaster.errors import OutOfCredit, UserError
from stationmaster.model import EntryKind, Outcome, Reason, State
from stationmaster.money import MicroDollars
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.tables import metadata
from stationmaster.store.writes import CreditHold, Settlement, Write
from tests.support.chaos.points import Clock, Killed, WatchedDatabase
from tests.support.jobs.spine_values import spec
from tests.support.servers.postgres import PostgresServer

USERS = ("ann", "bob")
_LEASE_SECONDS = 10.0

amounts = st.integers(min_value=1, max_value=1_000).map(MicroDollars)
_hold = st.tuples(st.just("hold"), st.sampled_from(USERS), amounts, st.none())
_settle = st.tuples(st.just("settle"), st.integers(0, 5), st.integers(0, 1_500), st.none())
moves = st.one_of(
    _hold,
    _hold,
    _settle,
    _settle,
    st.tuples(st.just("grant"), st.sampled_from(USERS), amounts, st.sampled_from([None, 60.0, 5_000.0])),
    st.tuples(st.just("adjust"), st.sampled_from(USERS), st.integers(-500, 500).filter(bool), st.none()),
    st.tuples(st.just("again"), st.integers(0, 5), st.integers(0, 1_500), st.none()),
    st.tuples(st.just("refund"), st.integers(0, 5), amounts, st.none()),
    st.tuples(st.just("wait"), st.just(0), st.integers(1, 4_000), st.none()),
)
deaths = st.sampled_from([None, None, "before COMMIT", "after COMMIT", "before BEGIN"])
histories = st.lists(st.tuples(moves, deaths), min_size=8, max_size=20)


@dataclass
class Process:
    """Dies at the next point of this name, once."""

    dies_at: str | None = None

    def __call__(self, name: str) -> None:
        if name == self.dies_at:
            self.dies_at = None
            raise Killed(name)


@dataclass
class World:
    """The store, and what must be true of it by our own count."""

    store: Store
    clock: Clock
    process: Process
    jobs: list[Lease] = field(default_factory=list)
    charged: Counter[str] = field(default_factory=Counter)
    refunded: Counter[str] = field(default_factory=Counter)
    numbers: int = 0

    def next_key(self) -> str:
        self.numbers += 1
        return f"key-{self.numbers}"

    def surely(self, act: Callable[[], object]) -> object:
        """Do it; whoever dies on the way is followed by another who does the same again, none the wiser."""
        try:
            return act()
        except Killed:
            return act()


def carry_out(world: World, move: tuple[str, object, object, object]) -> None:
    match move:
        case ("grant", str(user), int(amount), (float() | None) as expires):
            key, given = world.next_key(), MicroDollars(amount)
            world.surely(lambda: world.store.ledger.grant(user, given, note="", key=key, expires_in=expires))
        case ("adjust", str(user), int(amount), _):
            key, by = world.next_key(), MicroDollars(amount)
            try:
                world.surely(lambda: world.store.ledger.adjust(user, by, note="", key=key))
            except OutOfCredit:
                pass
        case ("hold", str(user), int(amount), _):
            hold(world, user, amount)
        case ("settle", int(which), int(charge), _):
            settle(world, which, charge, again=False)
        case ("again", int(which), int(charge), _):
            settle(world, which, charge, again=True)
        case ("refund", int(which), int(amount), _):
            refund(world, which, amount)
        case ("wait", _, int(seconds), _):
            world.clock.advance(seconds)


def hold(world: World, user: str, amount: int) -> None:
    job_id = f"job-{world.next_key()}"
    world.surely(lambda: world.store.jobs.submit(spec(job_id, owner=user)))
    lease = claim(world, job_id)
    write = held(lease, attempt=1, amount=amount)
    world.surely(lambda: world.store.leases.record(lease, write))
    if world.store.jobs.get(job_id).state is State.PROVISIONING:
        world.jobs.append(replace(lease, job=write.job))


def settle(world: World, which: int, charge: int, *, again: bool) -> None:
    """The end of an attempt; `again` goes on to another, if its owner can pay for it."""
    if not world.jobs:
        return
    lease = world.jobs.pop(which % len(world.jobs))
    job, attempt = lease.job, lease.job.attempt
    settlement = Settlement(job_id=job.id, attempt=attempt, charge=MicroDollars(charge))
    over = Write(job=replace(job, state=State.ENDED, outcome=Outcome.COMPLETED), due_in=None, ledger=(settlement,))
    write = over
    if again:
        further = held(lease, attempt=attempt + 1, amount=charge + 1)
        (more,) = further.ledger
        assert isinstance(more, CreditHold)
        write = replace(further, ledger=(settlement, replace(more, otherwise=over)))
    world.surely(lambda: world.store.leases.record(lease, write))
    world.surely(lambda: world.store.leases.record(lease, over)) if not again else None  # a replay changes nothing
    entries = [entry for entry in world.store.ledger.entries(job=job.id) if entry.attempt == attempt]
    kept = sum(entry.held for entry in entries if entry.kind is EntryKind.HOLD)
    world.charged[job.id] += min(charge, kept)
    if again and world.store.jobs.get(job.id).state is State.PROVISIONING:
        world.jobs.append(replace(lease, job=write.job))


def refund(world: World, which: int, amount: int) -> None:
    jobs = sorted(world.charged)
    if not jobs:
        return
    job_id, key = jobs[which % len(jobs)], world.next_key()
    try:
        world.surely(lambda: world.store.ledger.refund(job_id, MicroDollars(amount), note="", key=key))
    except UserError:
        assert amount > world.charged[job_id] - world.refunded[job_id]
    else:
        world.refunded[job_id] += amount


def held(lease: Lease, *, attempt: int, amount: int) -> Write:
    job = lease.job
    short = replace(job, state=State.ENDED, outcome=Outcome.FAILED, reason=Reason.OUT_OF_CREDIT)
    wanted = CreditHold(
        user=str(job.spec.owner), job_id=job.id, attempt=attempt, least=MicroDollars(amount),
        most=MicroDollars(2 * amount), otherwise=Write(job=short, due_in=None),
    )  # fmt: skip
    return Write(job=replace(job, state=State.PROVISIONING, attempt=attempt), due_in=None, ledger=(wanted,))


def claim(world: World, job_id: str) -> Lease:
    """A worker that died with the claim in its hand is followed by one for whom the lease has run out."""
    try:
        leases = world.store.leases.claim("worker", limit=9, seconds=_LEASE_SECONDS)
    except Killed:
        world.clock.advance(_LEASE_SECONDS + 1)
        leases = world.store.leases.claim("worker", limit=9, seconds=_LEASE_SECONDS)
    (lease,) = [one for one in leases if one.job.id == job_id]
    return lease


def check(world: World) -> None:
    """All that must hold, worked out apart from the ledger's own proof as well."""
    proof = world.store.ledger.prove()
    assert proof.problems == ()
    entries = list(world.store.ledger.entries())
    for user in USERS:
        account = world.store.ledger.account(user)
        mine = list(world.store.ledger.entries(user))
        assert account.balance == sum(entry.balance for entry in mine) >= 0
        assert account.held == sum(entry.held for entry in mine) >= 0
    sums: Counter[EntryKind] = Counter()
    for entry in entries:
        sums[entry.kind] += entry.held
    assert sums[EntryKind.HOLD] + sums[EntryKind.SETTLEMENT] + sums[EntryKind.RELEASE] == proof.held
    assert {lease.job.id for lease in world.jobs} == open_jobs(world)
    for job_id, charged in world.charged.items():
        of_job = [entry for entry in entries if entry.job == job_id]
        assert -sum(entry.held for entry in of_job if entry.kind is EntryKind.SETTLEMENT) == charged
        given_back = sum(entry.balance for entry in of_job if entry.kind is EntryKind.REFUND)
        assert given_back == world.refunded[job_id] <= charged


def open_jobs(world: World) -> set[str | None]:
    left: Counter[str | None] = Counter()
    for entry in world.store.ledger.entries():
        left[entry.job] += entry.held
    return {job for job, amount in left.items() if amount}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Callable[[], World]]:
    """Makes the store empty again for the next history."""
    folder = tmp_path_factory.mktemp("histories")
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{folder / 'live.db'}" if is_sqlite else postgres_server.new_database()
    process, clock = Process(), Clock()
    if is_sqlite:
        with closing(Store(Database(f"sqlite:///{folder / 'empty.db'}"))):
            pass
        shutil.copyfile(folder / "empty.db", folder / "live.db")
    database = WatchedDatabase(url, process, clock)
    with closing(Store(database)) as store:

        def empty() -> World:
            process.dies_at, clock.offset = None, 0.0
            with store.database.write() as connection:
                for table in metadata.sorted_tables:
                    if table.name != "installation":
                        connection.execute(table.delete())
            for user in USERS:
                store.ledger.grant(user, MicroDollars(1_500), note="to begin with")
            return World(store=store, clock=clock, process=process)

        yield empty


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories)
def test_whatever_happens_and_whoever_dies_the_ledger_adds_up(
    opened: Callable[[], World], history: list[tuple[tuple[str, object, object, object], str | None]]
) -> None:
    world = opened()
    for move, death in history:
        world.process.dies_at = death
        carry_out(world, move)
        world.process.dies_at = None
    check(world)
