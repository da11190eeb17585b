"""Moves credits with a job: holds, settlements and the daily cap, in the transaction that moves the job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.model import EntryKind, State
from stationmaster.money import ZERO, MicroDollars, drawn
from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.codec import cost_line_from_row, spec_from_text
from stationmaster.store.engine import Database
from stationmaster.store.ownership import ids_of_owner, owned_by
from stationmaster.store.tables import cost_lines, credit_accounts, credit_lots, jobs, ledger_entries
from stationmaster.store.writes import CreditHold, DailyCapCheck, Settlement, Write

_WORKER = "stationmaster"
DAY_SECONDS = 86_400.0
_NOT_AT_WORK = (State.QUEUED.value, State.ENDED.value)
RETURN_GRACE_SECONDS = 7 * 86_400.0
"""How long credits can be spent that expired while they were held and then were returned."""


class Posting:
    """Changes accounts inside the caller's transaction. Before spending, lock the account."""

    def __init__(self, database: Database) -> None:
        now = database.now
        self._now = now
        self._lots = (
            sa.select(credit_lots.c.id, credit_lots.c.remaining, (credit_lots.c.expires_at <= now).label("expired"))
            .where(credit_lots.c.user == sa.bindparam("b_user"), credit_lots.c.remaining > 0)
            .order_by(*SPENDING_ORDER)
        )
        self._insert = ledger_entries.insert().values(at=now)
        self._give_back = (
            credit_lots.update()
            .where(credit_lots.c.id == sa.bindparam("b_lot"))
            .values(
                remaining=credit_lots.c.remaining + sa.bindparam("b_amount", type_=sa.BigInteger),
                expires_at=sa.case(
                    (credit_lots.c.expires_at <= now, now + RETURN_GRACE_SECONDS), else_=credit_lots.c.expires_at
                ),
            )
        )

    def apply(self, connection: Connection, write: Write) -> Write:
        """Move the credits that `write` asks for; return the write to make, or its `otherwise`."""
        for part in write.ledger:
            if isinstance(part, Settlement):
                self._settle(connection, part)
            elif isinstance(part, DailyCapCheck):
                if not self._is_under_cap(connection, part):
                    return self.apply(connection, part.otherwise)
            else:
                amount = self._hold(connection, part)
                if amount is None:
                    return self.apply(connection, part.otherwise)
                funding = replace(write.job.funding, hold=amount)
                write = replace(write, job=replace(write.job, funding=funding))
        return write

    def lock(self, connection: Connection, user: str) -> None:
        """Lock the account, so that no other transaction spends its credits before this one ends."""
        if connection.execute(_LOCK, {"b_user": user}).one_or_none() is None:
            insert_if_absent(connection, credit_accounts, {"user": user})
            connection.execute(_LOCK, {"b_user": user}).one()

    def spendable(self, connection: Connection, user: str) -> list[tuple[str, int]]:
        """What each lot still holds, in spending order, after writing off expired lots."""
        rows = connection.execute(self._lots, {"b_user": user}).mappings().all()
        self._write_off(connection, user, [row for row in rows if row["expired"]])
        return [(row["id"], row["remaining"]) for row in rows if not row["expired"]]

    def post(self, connection: Connection, user: str, entries: Sequence[dict[str, Any]]) -> None:
        """Write entries of one account, all parts of one movement."""
        common = {"user": user, "job": None, "attempt": None, "key": None, "note": "", "actor": _WORKER}
        connection.execute(self._insert, [{**common, "part": part, **entry} for part, entry in enumerate(entries)])

    def take(self, connection: Connection, parts: Iterable[tuple[str, int]]) -> None:
        """Reduce what the lots hold."""
        if rows := _in_order(parts):
            connection.execute(_TAKE, rows)

    def _hold(self, connection: Connection, hold: CreditHold) -> MicroDollars | None:
        attempt = {"b_job": hold.job_id, "b_attempt": hold.attempt}
        found = connection.execute(_LOCK_TO_HOLD, {"b_user": hold.user, **attempt}).one_or_none()
        if found is None:
            return None  # a user who never had credits
        if found.is_held:  # hold once per attempt, and never again after its settlement
            return MicroDollars(sum(row["held"] for row in connection.execute(_OF_ATTEMPT, attempt).mappings())) or None
        lots = self.spendable(connection, hold.user)
        amount = min(hold.most, sum(remaining for _, remaining in lots))
        parts = drawn(amount, lots) if amount >= hold.least else None
        if not parts:
            return None
        named = {"kind": EntryKind.HOLD.value, "job": hold.job_id, "attempt": hold.attempt}
        self.post(connection, hold.user, [{**named, "lot": lot, "balance": -part, "held": part} for lot, part in parts])
        self.take(connection, parts)
        return MicroDollars(amount)

    def _settle(self, connection: Connection, settlement: Settlement) -> None:
        entries = connection.execute(
            _OF_ATTEMPT, {"b_job": settlement.job_id, "b_attempt": settlement.attempt}
        ).mappings().all()  # fmt: skip
        holds = [row for row in entries if row["kind"] == EntryKind.HOLD.value]
        if not holds or len(holds) < len(entries):
            return  # never held, or settled already
        user = holds[0]["user"]
        charged, returned = _split(holds, settlement.charge)
        named = {"job": settlement.job_id, "attempt": settlement.attempt, "note": settlement.note}
        self.post(
            connection,
            user,
            [
                {**named, "kind": EntryKind.SETTLEMENT.value, "lot": lot, "balance": 0, "held": -amount}
                for lot, amount in charged or [(holds[0]["lot"], ZERO)]
            ]
            + [
                {**named, "kind": EntryKind.RELEASE.value, "lot": lot, "balance": amount, "held": -amount}
                for lot, amount in returned
            ],
        )
        if returned:
            connection.execute(self._give_back, _in_order(returned))

    def _is_under_cap(self, connection: Connection, check: DailyCapCheck) -> bool:
        self.lock(connection, check.user)
        now = float(connection.execute(sa.select(self._now)).scalar_one())
        used = committed_spend(connection, check.user, since=now - DAY_SECONDS, now=now, without=check.job_id)
        return used + check.need <= check.cap

    def _write_off(self, connection: Connection, user: str, expired: Sequence[RowMapping]) -> None:
        parts = [(row["id"], row["remaining"]) for row in expired]
        if parts:
            entry = {"kind": EntryKind.EXPIRY.value, "held": 0}
            self.post(connection, user, [{**entry, "lot": lot, "balance": -amount} for lot, amount in parts])
            self.take(connection, parts)


def committed_spend(
    connection: Connection, user: str, *, since: float, now: float, without: str | None = None
) -> MicroDollars:
    """What a user's machines have cost since then; a running job counts with at least its expected cost.

    Removed jobs still count with what they cost.
    """
    costs: dict[str, int] = defaultdict(int)
    recent = sa.or_(cost_lines.c.ended_at.is_(None), cost_lines.c.ended_at > since)
    lines = sa.select(cost_lines).where(recent, cost_lines.c.job_id.in_(ids_of_owner(user)))
    for row in connection.execute(lines).mappings():
        costs[row["job_id"]] += cost_line_from_row(row).so_far(now=now)
    working = sa.select(jobs.c.id, jobs.c.spec).where(owned_by(user), jobs.c.state.not_in(_NOT_AT_WORK))
    for row in connection.execute(working).mappings():
        if row["id"] != without:
            costs[row["id"]] = max(costs[row["id"]], spec_from_text(row["spec"]).quote.cost_expected)
    return MicroDollars(sum(costs.values()))


def _in_order(parts: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """Parameters in a fixed order of lots: otherwise two transactions could deadlock."""
    return [{"b_lot": lot, "b_amount": amount} for lot, amount in sorted(parts)]


def _split(
    holds: Sequence[RowMapping], charge: int
) -> tuple[list[tuple[str, MicroDollars]], list[tuple[str, MicroDollars]]]:
    """What to charge from each lot, in spending order, and what to return to each."""
    held = [(row["lot"], row["held"]) for row in holds]
    charge = min(charge, sum(amount for _, amount in held))  # never more than was held
    charged = drawn(charge, held) or []
    taken = dict(charged)
    returned = [(lot, MicroDollars(amount - taken.get(lot, 0))) for lot, amount in held]
    return charged, [(lot, amount) for lot, amount in returned if amount > 0]


SPENDING_ORDER = (credit_lots.c.expires_at.is_(None), credit_lots.c.expires_at, credit_lots.c.at, credit_lots.c.id)
"""Credits that expire first, then the oldest."""

_LOCK = sa.select(credit_accounts.c.user).where(credit_accounts.c.user == sa.bindparam("b_user")).with_for_update()
_LOCK_TO_HOLD = _LOCK.add_columns(
    sa.exists()
    .where(ledger_entries.c.job == sa.bindparam("b_job"), ledger_entries.c.attempt == sa.bindparam("b_attempt"))
    .label("is_held")
)
_OF_ATTEMPT = (
    sa.select(ledger_entries)
    .where(ledger_entries.c.job == sa.bindparam("b_job"), ledger_entries.c.attempt == sa.bindparam("b_attempt"))
    .order_by(ledger_entries.c.part)
)
_TAKE = (
    credit_lots.update()
    .where(credit_lots.c.id == sa.bindparam("b_lot"))
    .values(remaining=credit_lots.c.remaining - sa.bindparam("b_amount", type_=sa.BigInteger))
)
