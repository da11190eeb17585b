"""Proves that credits add up: recomputes everything from the entries alone and compares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.model import EntryKind, LedgerProof, State
from stationmaster.money import MicroDollars
from stationmaster.store.tables import credit_accounts, credit_lots, jobs, ledger_entries

_BATCH = 1000


@dataclass(slots=True)
class _Attempt:
    """An attempt's hold, computed from the entries."""

    user: str
    held: int = 0
    charged: int = 0
    returned: int = 0
    settled: bool = False

    @property
    def open(self) -> int:
        return self.held - self.charged - self.returned


@dataclass(slots=True)
class _Sums:
    """Everything computed from the entries."""

    entries: int = 0
    balances: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    held: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lots: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    attempts: dict[tuple[str, int], _Attempt] = field(default_factory=dict)
    refunded: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    problems: list[str] = field(default_factory=list)


def prove(connection: Connection) -> LedgerProof:
    """Check the whole ledger; the connection must see one snapshot of it."""
    sums = _Sums()
    entries = sa.select(ledger_entries).order_by(ledger_entries.c.seq)
    for row in connection.execution_options(yield_per=_BATCH).execute(entries).mappings():
        _add(sums, row)
    problems = [
        *sums.problems,
        *_accounts(connection, sums),
        *_lots(connection, sums),
        *_attempts(connection, sums),
        *_refunds(sums),
    ]
    return LedgerProof(
        entries=sums.entries,
        accounts=len(sums.balances),
        balance=MicroDollars(sum(sums.balances.values())),
        held=MicroDollars(sum(sums.held.values())),
        problems=tuple(problems),
    )


def _add(sums: _Sums, row: RowMapping) -> None:
    user, kind, seq = row["user"], row["kind"], row["seq"]
    sums.entries += 1
    sums.balances[user] += row["balance"]
    sums.held[user] += row["held"]
    sums.lots[row["lot"]] += row["balance"]
    if sums.balances[user] < 0 and kind != EntryKind.SETTLEMENT.value:
        sums.problems.append(f"entry {seq}: the balance of {user} is below zero")
    if kind == EntryKind.REFUND.value:
        sums.refunded[row["job"]] += row["balance"]
    if row["attempt"] is not None:
        _add_to_attempt(sums, row)


def _add_to_attempt(sums: _Sums, row: RowMapping) -> None:
    name = (row["job"], row["attempt"])
    attempt = sums.attempts.setdefault(name, _Attempt(user=row["user"]))
    if attempt.user != row["user"]:
        sums.problems.append(f"entry {row['seq']}: {row['user']} moves credits held by {attempt.user}")
    match row["kind"]:
        case EntryKind.HOLD.value:
            if attempt.settled:
                sums.problems.append(f"entry {row['seq']}: the hold comes after its settlement")
            attempt.held += row["held"]
            moved = row["balance"] + row["held"]
        case EntryKind.SETTLEMENT.value:
            attempt.settled = True
            attempt.charged -= row["held"]
            moved = row["balance"]
        case EntryKind.RELEASE.value:
            attempt.returned += row["balance"]
            moved = row["balance"] + row["held"]
        case other:
            moved = 0
            sums.problems.append(f"entry {row['seq']}: a {other} must not name an attempt")
    if moved:
        sums.problems.append(f"entry {row['seq']}: its two sides do not match")


def _accounts(connection: Connection, sums: _Sums) -> Iterator[str]:
    spendable: dict[str, int] = defaultdict(int)
    for row in connection.execute(sa.select(credit_lots.c.user, credit_lots.c.remaining)):
        spendable[row.user] += row.remaining
    known = set(connection.execute(sa.select(credit_accounts.c.user)).scalars())
    for user in sorted(known | spendable.keys()):
        if spendable[user] != sums.balances[user]:
            yield f"{user}: the lots hold {spendable[user]}, the entries add up to {sums.balances[user]}"
    for user in sorted(sums.balances.keys() - known):
        yield f"{user}: has entries but no account"
    by_user: dict[str, int] = defaultdict(int)
    for attempt in sums.attempts.values():
        by_user[attempt.user] += attempt.open
    for user in sorted(sums.held.keys()):
        if sums.held[user] != by_user[user]:
            yield f"{user}: {sums.held[user]} held, but the open holds add up to {by_user[user]}"


def _lots(connection: Connection, sums: _Sums) -> Iterator[str]:
    known = set()
    for row in connection.execute(sa.select(credit_lots)).mappings():
        known.add(row["id"])
        if row["remaining"] != sums.lots[row["id"]]:
            yield f"lot {row['id']}: {row['remaining']} left, but its entries add up to {sums.lots[row['id']]}"
        if not 0 <= row["remaining"] <= row["amount"]:
            yield f"lot {row['id']}: {row['remaining']} left of {row['amount']}"
    for lot in sorted(sums.lots.keys() - known):
        yield f"lot {lot}: has entries but does not exist"


def _attempts(connection: Connection, sums: _Sums) -> Iterator[str]:
    where = {
        row["id"]: (row["state"], row["attempt"])
        for row in connection.execute(sa.select(jobs.c.id, jobs.c.state, jobs.c.attempt)).mappings()
    }
    for (job, number), attempt in sums.attempts.items():
        named = f"job {job}, attempt {number}"
        if attempt.charged < 0 or attempt.returned < 0 or attempt.open < 0:
            yield f"{named}: charged and returned more than the hold of {attempt.held}"
        if attempt.settled and attempt.open:
            yield f"{named}: settled, but {attempt.open} still held"
        state, current = where.get(job, (State.ENDED.value, number))
        if not attempt.settled and (state == State.ENDED.value or current != number):
            yield f"{named}: ended, but its hold of {attempt.held} was never settled"


def _refunds(sums: _Sums) -> Iterator[str]:
    charged: dict[str, int] = defaultdict(int)
    for (job, _), attempt in sums.attempts.items():
        charged[job] += attempt.charged
    for job, amount in sums.refunded.items():
        if amount > charged[job]:
            yield f"job {job}: refunded {amount}, but charged only {charged[job]}"
