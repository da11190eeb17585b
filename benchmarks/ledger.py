"""Attempts per second whose credits are held and settled, by four worker processes on one PostgreSQL.

An attempt is two transactions, as a worker makes them: one moves the job to PROVISIONING and holds its credits, one
moves it to ENDED and settles them; each writes the job's row under its lease, its event, and its entries. Fifty users
share the jobs, so that workers compete for their accounts. Two figures: by the clock, and by the processor time of
workers and server together, which is more exact on a busy computer. For comparison, in the same run and on the same
server, the bare rate: the same rows written with plain SQL of the driver in as many transactions, with no computation
and no checks. Afterwards the whole ledger is verified.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg

from _jobs import job_spec, small_dataset
from _postgres import postgresql_url
from _process import cpu_seconds
from _report import report
from stationmaster.model import Job, Outcome, Reason, State
from stationmaster.money import MicroDollars
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import CreditHold, NewEvent, Settlement, Write

BUDGET_PAIRS_PER_SECOND = 200.0
BUDGET_SHARE = 0.1
WORKERS = 4
_PAIRS_EACH = 250
_PAIRS = WORKERS * _PAIRS_EACH
_USERS = 50
_GIVEN = MicroDollars(1_000_000_000)
_HELD, _CHARGED = MicroDollars(720_000), MicroDollars(360_000)
_LEASE_SECONDS = 600.0

Used = SimpleQueue[float]
"""What each worker used of the processors, in seconds."""
Work = Callable[[str, int, Barrier, Used], None]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, postgresql_url() as url:
        _prepare(Path(folder), url)
        ours = _measure(url, _settle_jobs)
        _check(url)
        bare = _measure(url, _plain_sql)
    name = "hold and settlement, 4 workers, PostgreSQL"
    report(name, _PAIRS / ours.seconds, "pairs per s", at_least=BUDGET_PAIRS_PER_SECOND)
    report(name, _PAIRS / ours.cpu_seconds, "pairs per CPU s", at_least=BUDGET_PAIRS_PER_SECOND / 2)  # of two cores
    report("share of the bare SQL rate, by the clock", bare.seconds / ours.seconds, "of 1", at_least=BUDGET_SHARE)
    report("share of the bare SQL rate, by CPU", bare.cpu_seconds / ours.cpu_seconds, "of 1", at_least=BUDGET_SHARE)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    seconds: float
    cpu_seconds: float  # of the workers, and of the server's processes that serve them


def _prepare(folder: Path, url: str) -> None:
    with closing(Store(Database(url))) as store:
        dataset = small_dataset(folder)
        for number in range(_USERS):
            store.ledger.grant(f"user-{number}", _GIVEN, note="to begin with")
        for number in range(_PAIRS):
            spec = job_spec(number, dataset, steps=2)
            store.jobs.submit(replace(spec, owner=f"user-{number % _USERS}"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE bare_jobs (id text PRIMARY KEY, state text, memory text);"
            "CREATE TABLE bare_events (seq bigserial PRIMARY KEY, job text, version int, kind text, payload text);"
            "CREATE TABLE bare_lots (id text PRIMARY KEY, remaining bigint);"
            "CREATE TABLE bare_entries (seq bigserial PRIMARY KEY, name text, kind text, lot text, balance bigint,"
            " held bigint, job text, attempt int, part int, at double precision, UNIQUE (job, attempt, kind, part));"
            f"INSERT INTO bare_jobs SELECT 'job-' || n, 'QUEUED', '{{}}' "
            f"FROM generate_series(0, {_PAIRS - 1}) n;"
            f"INSERT INTO bare_lots SELECT 'user-' || n, {_GIVEN} FROM generate_series(0, {_USERS - 1}) n"
        )


def _measure(url: str, work: Work) -> Measured:
    """Measure all workers together, from when all are ready until the last is done."""
    context = multiprocessing.get_context("spawn")
    ready, used = context.Barrier(WORKERS + 1), context.SimpleQueue()
    workers = [context.Process(target=work, args=(url, number, ready, used)) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    ready.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit(f"a worker ended with {worker.exitcode}: the measure is worthless")
    seconds = time.perf_counter() - began
    return Measured(seconds=seconds, cpu_seconds=sum(used.get() for _ in workers))


class _Cpu:
    """Processor time of this process and of the server's process that serves it, since it was made."""

    def __init__(self, server_pid: int) -> None:
        self._server_pid = server_pid
        self._began = self._now()

    def used(self) -> float:
        return self._now() - self._began

    def _now(self) -> float:
        return time.process_time() + cpu_seconds(self._server_pid)


def _settle_jobs(url: str, number: int, ready: Barrier, used: Used) -> None:
    with closing(Store(Database(url))) as store:
        leases: list[Lease] = []
        while len(leases) < _PAIRS_EACH:
            limit = min(100, _PAIRS_EACH - len(leases))
            leases += store.leases.claim(f"worker-{number}", limit=limit, seconds=_LEASE_SECONDS)
        with store.database.read() as connection:  # the pool gives out the one connection that it has made
            server_pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        cpu = _Cpu(server_pid)
        ready.wait()
        for lease in leases:
            held = store.leases.record(lease, _claimed(lease.job))
            store.leases.settle(held, _ended(held.job))
        used.put(cpu.used())


def _claimed(job: Job) -> Write:
    hold = CreditHold(
        user=str(job.spec.owner), job_id=job.id, attempt=1, least=_HELD, most=_HELD, otherwise=Write(job=job)
    )
    event = NewEvent(kind="state", payload={"from": "QUEUED", "to": "PROVISIONING", "attempt": 1})
    return Write(job=replace(job, state=State.PROVISIONING, attempt=1), events=(event,), ledger=(hold,))


def _ended(job: Job) -> Write:
    over = replace(job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    settlement = Settlement(job_id=job.id, attempt=1, charge=_CHARGED, note="FINISHED")
    event = NewEvent(kind="state", payload={"from": "PROVISIONING", "to": "ENDED", "attempt": 1})
    return Write(job=over, due_in=None, events=(event,), ledger=(settlement,))


_HOLD_SQL = (
    "INSERT INTO bare_entries (name, kind, lot, balance, held, job, attempt, part, at) VALUES "
    "(%(user)s, 'HOLD', %(user)s, -%(held)s, %(held)s, %(job)s, 1, 0, extract(epoch from clock_timestamp()))",
    "UPDATE bare_lots SET remaining = remaining - %(held)s WHERE id = %(user)s",
    "UPDATE bare_jobs SET state = 'PROVISIONING' WHERE id = %(job)s",
    "INSERT INTO bare_events (job, version, kind, payload) VALUES (%(job)s, 2, 'state', '{}')",
)
_SETTLE_SQL = (
    "INSERT INTO bare_entries (name, kind, lot, balance, held, job, attempt, part, at) VALUES "
    "(%(user)s, 'SETTLEMENT', %(user)s, 0, -%(charged)s, %(job)s, 1, 0, extract(epoch from clock_timestamp())), "
    "(%(user)s, 'RELEASE', %(user)s, %(back)s, -%(back)s, %(job)s, 1, 1, extract(epoch from clock_timestamp()))",
    "UPDATE bare_lots SET remaining = remaining + %(back)s WHERE id = %(user)s",
    "UPDATE bare_jobs SET state = 'ENDED' WHERE id = %(job)s",
    "INSERT INTO bare_events (job, version, kind, payload) VALUES (%(job)s, 3, 'state', '{}')",
)


def _plain_sql(url: str, number: int, ready: Barrier, used: Used) -> None:
    with psycopg.connect(url) as connection:
        cpu = _Cpu(connection.info.backend_pid)
        ready.wait()
        for job in range(number, _PAIRS, WORKERS):
            values = {
                "job": f"job-{job}", "user": f"user-{job % _USERS}", "held": _HELD, "charged": _CHARGED,
                "back": _HELD - _CHARGED,
            }  # fmt: skip
            for statements in (_HOLD_SQL, _SETTLE_SQL):
                for statement in statements:
                    connection.execute(statement, values)
                connection.commit()
        used.put(cpu.used())


def _check(url: str) -> None:
    """Check the invariants on everything that was written."""
    with closing(Store(Database(url))) as store:
        proof = store.ledger.prove()
    if proof.problems or (proof.entries, proof.held) != (_USERS + 3 * _PAIRS, 0):
        raise SystemExit(f"the ledger is not sound: {proof}")
    if proof.balance != _USERS * _GIVEN - _PAIRS * _CHARGED:
        raise SystemExit(f"{proof.balance} are left, which is not what was given less what was charged")


if __name__ == "__main__":
    sys.exit(main())
