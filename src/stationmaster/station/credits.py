"""Credits: the balances of users, every change to them, and a check that they add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.durations import LONGEST_SECONDS
from stationmaster.errors import UserError
from stationmaster.model import CreditAccount, EntryKind, LedgerEntry, LedgerProof
from stationmaster.money import LARGEST_AMOUNT, MicroDollars, Unit

__all__ = [
    "GRANT_KINDS",
    "Adjustment",
    "CreditAccount",
    "CreditChange",
    "Credits",
    "Grant",
    "LedgerEntry",
    "LedgerProof",
    "RefundRequest",
    "Refunded",
    "require_adjustment",
    "require_grant",
    "require_refund",
]

GRANT_KINDS: Mapping[str, EntryKind] = {
    "grant": EntryKind.GRANT,
    "top-up": EntryKind.TOP_UP,
    "reward": EntryKind.REWARD,
}
"""The kinds of credits that can be given, by their names in commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Credits for a user. Repeating `key` changes nothing."""

    user: str
    amount: MicroDollars
    reason: str
    actor: str  # who gives them
    kind: EntryKind = EntryKind.GRANT  # one of GRANT_KINDS
    expires_in: float | None = None  # seconds until what is left of them expires; None: never
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A correction of a user's balance, up or down. Repeating `key` changes nothing."""

    user: str
    amount: MicroDollars
    reason: str
    actor: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRequest:
    """Credits that a job was charged, given back to its owner. Repeating `key` changes nothing."""

    job: str  # an id, a unique beginning of one, or a name; of a removed job, its id
    reason: str
    actor: str
    amount: MicroDollars | None = None  # None: all that was charged and not given back yet
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditChange:
    changed: bool  # False: already done under the same key
    account: CreditAccount  # as it is now


@dataclass(frozen=True, slots=True, kw_only=True)
class Refunded:
    job_id: str
    amount: MicroDollars  # zero if already done under the same key


class Credits(Protocol):
    """Every method but `are_on` raises ConfigInvalid if credits are off."""

    def are_on(self) -> bool: ...

    def unit(self) -> Unit:
        """The unit in which amounts are shown and typed."""

    def accounts(self, *, after: str = "", limit: int | None = None) -> Sequence[CreditAccount]:
        """The accounts of all users who have or had credits, by name: those after this name, at most `limit`."""

    def account(self, user: str) -> CreditAccount:
        """Raises NotFound for a user who was never added and never had credits."""

    def grant(self, grant: Grant) -> CreditChange:
        """Raises NotFound as `account` does, and UserError for an amount or a lifetime that is not above zero, for an
        empty reason, for a kind that is not in GRANT_KINDS, and for a key that was used for something else.
        """

    def adjust(self, adjustment: Adjustment) -> CreditChange:
        """Raises NotFound as `account` does, OutOfCredit where the balance is lower than what is taken away, and
        UserError for an empty reason and for a key that was used for something else.
        """

    def refund(self, request: RefundRequest) -> Refunded:
        """Raises NotFound for a job that no credits were ever held for, and UserError for an amount that is not above
        zero or more than was charged, for an empty reason, and for a key that was used for something else.
        """

    def entries(self, user: str | None = None, *, after: int = 0, newest_first: bool = False) -> Iterator[LedgerEntry]:
        """Every entry of all users or of one, oldest first unless asked otherwise: those behind the entry with this
        `seq` in that order, or all. Raises NotFound as `account` does, at once.
        """

    def prove(self) -> LedgerProof:
        """Check every account, lot, hold and charge against the entries."""


def require_grant(grant: Grant) -> None:
    """Raises UserError for a grant that no ledger takes."""
    _require_above_zero(grant.amount)
    _require_reason(grant.reason)
    if grant.kind not in GRANT_KINDS.values():
        raise UserError(f"{grant.kind} is not a kind of credits", hint=f"use one of: {', '.join(GRANT_KINDS)}")
    _require_lifetime(grant.expires_in)


def require_adjustment(adjustment: Adjustment) -> None:
    """Raises UserError for a correction that no ledger takes."""
    _require_possible(adjustment.amount)
    _require_reason(adjustment.reason)


def require_refund(request: RefundRequest) -> None:
    """Raises UserError for a refund that no ledger takes."""
    if request.amount is not None:
        _require_above_zero(request.amount)
    _require_reason(request.reason)


def _require_above_zero(amount: MicroDollars) -> None:
    if amount <= 0:
        raise UserError("the amount must be above zero", hint="run `stationmaster credits adjust` to take credits away")
    _require_possible(amount)


def _require_possible(amount: MicroDollars) -> None:
    """The store's columns cannot hold more."""
    if abs(amount) > LARGEST_AMOUNT:
        raise UserError(f"{amount} micro-dollars is too large", hint=f"the maximum is {LARGEST_AMOUNT} micro-dollars")


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise UserError("the reason is empty", hint="give one: the statement shows it")


def _require_lifetime(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds <= LONGEST_SECONDS:
        raise UserError(
            "expires: must be above zero" if seconds <= 0 else "expires: must be at most a hundred years",
            hint="for example: 30d; leave it out if they never expire",
        )
