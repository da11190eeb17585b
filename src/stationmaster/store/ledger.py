"""Users' credits: grants, balance, holds, and every movement ever made."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.errors import NotFound, OutOfCredit, UserError
from stationmaster.model import CreditAccount, CreditLot, EntryKind, LedgerEntry, LedgerProof
from stationmaster.money import ZERO, MicroDollars, drawn
from stationmaster.store.codec import known_fields
from stationmaster.store.engine import Database
from stationmaster.store.ledger_posting import DAY_SECONDS, SPENDING_ORDER, Posting, committed_spend
from stationmaster.store.ledger_proof import prove
from stationmaster.store.storable_text import is_storable
from stationmaster.store.tables import credit_accounts, credit_lots, ledger_entries

_PAGE = 1000


class Ledger:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._posting = Posting(database)

    def grant(
        self,
        user: str,
        amount: MicroDollars,
        *,
        note: str,
        kind: EntryKind = EntryKind.GRANT,
        expires_in: float | None = None,
        key: str | None = None,
        actor: str = "operator",
    ) -> bool:
        """Add credits that expire after `expires_in` seconds; return False and change nothing if `key` was used before.

        Raises UserError if `key` was used for something else.
        """
        _require_above_zero(amount)
        with self._database.write() as connection:
            self._posting.lock(connection, user)
            if _is_used(connection, key, user=user, kind=kind, amount=amount):
                return False
            self._add_lot(connection, user, amount, expires_in, kind=kind.value, note=note, key=key, actor=actor)
        return True

    def adjust(
        self, user: str, amount: MicroDollars, *, note: str, key: str | None = None, actor: str = "operator"
    ) -> bool:
        """Correct an account, up or down. Raises OutOfCredit if the balance is too low."""
        with self._database.write() as connection:
            self._posting.lock(connection, user)
            if _is_used(connection, key, user=user, kind=EntryKind.ADJUSTMENT, amount=amount):
                return False
            named: dict[str, Any] = {"kind": EntryKind.ADJUSTMENT.value, "note": note, "key": key, "actor": actor}
            if amount > 0:
                self._add_lot(connection, user, amount, None, **named)
                return True
            parts = drawn(-amount, self._posting.spendable(connection, user))
            if not parts:
                raise OutOfCredit(f"{user} has less than that", hint=f"run `stationmaster credits show {user}`")
            rows = [{**named, "lot": lot, "balance": -part, "held": 0} for lot, part in parts]
            for row in rows[1:]:
                row["key"] = None  # keys are unique: only the first entry carries it
            self._posting.post(connection, user, rows)
            self._posting.take(connection, parts)
        return True

    def knows_job(self, job_id: str) -> bool:
        """Whether a job with this id has used credits; it may have been removed since."""
        if not is_storable(job_id):
            return False
        with self._database.read() as connection:
            return connection.execute(_OWNER_OF_JOB, {"b_job": job_id}).first() is not None

    def refund(
        self,
        job_id: str,
        amount: MicroDollars | None = None,
        *,
        note: str,
        key: str | None = None,
        actor: str = "operator",
    ) -> MicroDollars:
        """Refund a job's charge, all of it or `amount`; return what was refunded. Never more than was charged."""
        with self._database.write() as connection:
            owner = connection.execute(_OWNER_OF_JOB, {"b_job": job_id}).scalar_one_or_none()
            if owner is None:
                raise NotFound(f"job {job_id} never used credits")
            self._posting.lock(connection, owner)
            if _is_used(connection, key, user=owner, kind=EntryKind.REFUND, amount=amount, job=job_id):
                return ZERO
            left = charged_less_refunded(connection, job_id)
            wanted = left if amount is None else amount
            if wanted <= 0 or wanted > left:
                raise UserError(
                    f"at most {left} micro-dollars can be refunded for job {job_id}",
                    hint="omit the amount to refund all of it",
                )
            named = {"kind": EntryKind.REFUND.value, "job": job_id, "note": note, "key": key, "actor": actor}
            self._add_lot(connection, owner, MicroDollars(wanted), None, **named)
        return MicroDollars(wanted)

    def account(self, user: str) -> CreditAccount:
        """The user's credits now, after writing off expired ones."""
        if not self.knows(user):
            return CreditAccount(user=user)
        with self._database.write() as connection:
            self._posting.lock(connection, user)
            self._posting.spendable(connection, user)
            rows = connection.execute(_LOTS, {"b_user": user}).mappings().all()
            held = int(connection.execute(_HELD, {"b_user": user}).scalar_one())
        lots = tuple(known_fields(CreditLot, dict(row)) for row in rows)
        balance = MicroDollars(sum(lot.remaining for lot in lots))
        return CreditAccount(user=user, balance=balance, held=MicroDollars(held), lots=lots)

    def knows(self, user: str) -> bool:
        """Whether the user has or had credits."""
        if not is_storable(user):
            return False
        query = sa.select(sa.literal(1)).where(credit_accounts.c.user == user)
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def users(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Users who have or had credits, by name: those after this name, at most `limit`."""
        query = sa.select(credit_accounts.c.user).where(credit_accounts.c.user > after)
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(credit_accounts.c.user).limit(limit)).scalars())

    def entries(
        self, user: str | None = None, *, job: str | None = None, after: int = 0, newest_first: bool = False
    ) -> Iterator[LedgerEntry]:
        """Every movement behind the one with this `seq` in the order asked for; 0: from the first one."""
        while page := self._page(user, job, after, newest_first=newest_first):
            yield from page
            after = page[-1].seq

    def committed_today(self, user: str) -> MicroDollars:
        """What counts against the user's daily cap."""
        now = self._database.current_time()
        with self._database.read() as connection:
            return committed_spend(connection, user, since=now - DAY_SECONDS, now=now)

    def prove(self) -> LedgerProof:
        """Check every account, lot, hold and charge against the entries, in one snapshot."""
        with self._database.snapshot() as connection:
            return prove(connection)

    def _add_lot(
        self, connection: Connection, user: str, amount: MicroDollars, expires_in: float | None, **named: Any
    ) -> None:
        lot = named.get("key") or secrets.token_hex(8)
        entry = {**named, "lot": lot, "balance": amount, "held": 0}
        self._posting.post(connection, user, [entry])
        now = self._database.now
        fresh = {"id": lot, "user": user, "amount": amount, "remaining": amount}
        until = None if expires_in is None else now + expires_in
        connection.execute(credit_lots.insert().values(**fresh, at=now, expires_at=until))

    def _page(self, user: str | None, job: str | None, after: int, *, newest_first: bool) -> list[LedgerEntry]:
        seq = ledger_entries.c.seq
        query = sa.select(ledger_entries).order_by(seq.desc() if newest_first else seq)
        if after:
            query = query.where(seq < after if newest_first else seq > after)
        if user is not None:
            query = query.where(ledger_entries.c.user == user)
        if job is not None:
            query = query.where(ledger_entries.c.job == job)
        with self._database.read() as connection:
            return [_entry(row) for row in connection.execute(query.limit(_PAGE)).mappings()]


def charged_less_refunded(connection: Connection, job_id: str) -> int:
    """What a job was charged, minus refunds."""
    query = sa.select(ledger_entries.c.kind, ledger_entries.c.balance, ledger_entries.c.held).where(
        ledger_entries.c.job == job_id
    )
    amounts = {EntryKind.SETTLEMENT.value: 0, EntryKind.REFUND.value: 0}
    for row in connection.execute(query).mappings():
        if row["kind"] in amounts:
            amounts[row["kind"]] += row["balance"] - row["held"]
    return amounts[EntryKind.SETTLEMENT.value] - amounts[EntryKind.REFUND.value]


def _require_above_zero(amount: int) -> None:
    if amount <= 0:
        raise UserError("the amount must be above zero", hint="run `stationmaster credits adjust` to take credits away")


def _is_used(
    connection: Connection,
    key: str | None,
    *,
    user: str,
    kind: EntryKind,
    amount: MicroDollars | None,
    job: str | None = None,
) -> bool:
    """Whether this was done before under `key`. Raises UserError if `key` was used for something else.

    A deduction may come from several lots; only the entry for the first of them has the key, so it may be smaller.
    """
    row = None if key is None else connection.execute(_OF_KEY, {"b_key": key}).mappings().first()
    if row is None:
        return False
    is_same = amount is None or row["balance"] == amount or (amount < 0 and amount <= row["balance"] < 0)
    if not is_same or (row["user"], row["kind"], row["job"]) != (user, kind.value, job):
        raise UserError(
            f"the id {key} is already used: {row['kind']} of {row['balance']} micro-dollars for {row['user']}",
            hint="use another --id; nothing was changed",
        )
    return True


def _entry(row: RowMapping) -> LedgerEntry:
    return known_fields(LedgerEntry, {**row, "kind": EntryKind(row["kind"])})


_HELD = sa.select(sa.func.coalesce(sa.func.sum(ledger_entries.c.held), 0)).where(
    ledger_entries.c.user == sa.bindparam("b_user")
)
_LOTS = (
    sa.select(credit_lots)
    .where(credit_lots.c.user == sa.bindparam("b_user"), credit_lots.c.remaining > 0)
    .order_by(*SPENDING_ORDER)
)
_OF_KEY = sa.select(ledger_entries).where(ledger_entries.c.key == sa.bindparam("b_key"))
_OWNER_OF_JOB = (
    sa.select(ledger_entries.c.user)
    .where(ledger_entries.c.job == sa.bindparam("b_job"), ledger_entries.c.kind == EntryKind.HOLD.value)
    .limit(1)
)
