"""Credits: what users can spend, every movement of it, and the proof that it adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.model import CreditAccount, EntryKind, LedgerEntry, LedgerProof
from stationmaster.money import MicroDollars, Unit

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
]

GRANT_KINDS: Mapping[str, EntryKind] = {
    "grant": EntryKind.GRANT,
    "top-up": EntryKind.TOP_UP,
    "reward": EntryKind.REWARD,
}
"""What credits can be given as, by the word people use for it."""


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
    changed: bool  # False: it was done before under the same key
    account: CreditAccount  # as it is now


@dataclass(frozen=True, slots=True, kw_only=True)
class Refunded:
    job_id: str
    amount: MicroDollars  # zero where it was done before under the same key


class Credits(Protocol):
    """Every method but `are_on` raises ConfigInvalid where credits are off."""

    def are_on(self) -> bool: ...

    def unit(self) -> Unit:
        """What amounts are shown and typed in."""

    def accounts(self) -> Sequence[CreditAccount]:
        """Of everyone who has or had credits, by name."""

    def account(self, user: str) -> CreditAccount:
        """Raises NotFound for someone who was neither added nor ever had credits."""

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

    def entries(self, user: str | None = None) -> Iterator[LedgerEntry]:
        """Every movement, oldest first: of everyone, or of one user. Raises NotFound as `account` does, at once."""

    def prove(self) -> LedgerProof:
        """Check every account, lot, hold and charge against the entries."""
