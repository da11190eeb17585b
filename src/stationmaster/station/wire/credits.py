"""Credits: accounts, changes to them, and the ledger."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field

from stationmaster.durations import LONGEST_SECONDS
from stationmaster.model import CreditAccount, CreditLot, EntryKind, LedgerEntry, LedgerProof
from stationmaster.money import LARGEST_AMOUNT, MicroDollars, Unit
from stationmaster.station.credits import (
    GRANT_KINDS,
    Adjustment,
    CreditChange,
    Grant,
    Refunded,
    RefundRequest,
)
from stationmaster.station.wire.document import Document, Instant, LongText, RequestDocument, ShortText

_KIND_NAMES = {kind: name for name, kind in GRANT_KINDS.items()}

Key = Annotated[ShortText, Field(min_length=1, examples=["invoice-4711"])]
Reason = Annotated[LongText, Field(min_length=1, examples=["welcome"])]


class CreditSettingsDocument(Document):
    """Whether jobs are paid with credits, and how credits are shown."""

    enabled: bool
    """Whether jobs are paid with credits."""
    points_per_dollar: int | None = None
    """Null: credits are dollars."""

    def unit(self) -> Unit:
        return Unit(self.points_per_dollar)


class LotDocument(Document):
    """Credits that came in together."""

    id: str
    """Id of these credits."""
    amount_micros: int
    """How many came in, in micro-dollars."""
    remaining_micros: int
    """How many are left, in micro-dollars."""
    expires_at: Instant | None = None
    """When the rest expires; null: never."""
    at: Instant
    """When they came in."""


class AccountDocument(Document):
    """What a user can spend. Amounts are whole micro-dollars."""

    user: str = Field(examples=["ann"])
    """Whose account it is."""
    balance_micros: int = Field(examples=[12_500_000])
    """What they can spend."""
    held_micros: int
    """What is held for jobs that run."""
    lots: tuple[LotDocument, ...] = ()
    """In spending order."""

    @classmethod
    def of(cls, account: CreditAccount) -> Self:
        return cls(
            user=account.user,
            balance_micros=account.balance,
            held_micros=account.held,
            lots=tuple(
                LotDocument(
                    id=lot.id,
                    amount_micros=lot.amount,
                    remaining_micros=lot.remaining,
                    expires_at=lot.expires_at,
                    at=lot.at,
                )
                for lot in account.lots
            ),
        )

    def value(self) -> CreditAccount:
        return CreditAccount(
            user=self.user,
            balance=MicroDollars(self.balance_micros),
            held=MicroDollars(self.held_micros),
            lots=tuple(
                CreditLot(
                    id=lot.id,
                    user=self.user,
                    amount=MicroDollars(lot.amount_micros),
                    remaining=MicroDollars(lot.remaining_micros),
                    expires_at=lot.expires_at,
                    at=lot.at,
                )
                for lot in self.lots
            ),
        )


class AccountChangeDocument(AccountDocument):
    """An account after a change."""

    changed: bool
    """False: already done under the same key."""

    @classmethod
    def after(cls, change: CreditChange) -> Self:
        return cls(changed=change.changed, **AccountDocument.of(change.account).model_dump())

    def change(self) -> CreditChange:
        return CreditChange(changed=self.changed, account=self.value())


class GrantDocument(RequestDocument):
    """Credits for a user."""

    amount_micros: int = Field(gt=0, le=LARGEST_AMOUNT, examples=[25_000_000])
    """How much to add, in micro-dollars."""
    reason: Reason
    """Shown in the statement."""
    kind: Literal["grant", "top-up", "reward"] = "grant"
    """Shown in the statement."""
    expires_in_seconds: float | None = Field(default=None, gt=0, le=LONGEST_SECONDS, examples=[2_592_000])
    """What is left of them expires then; null: never."""
    key: Key | None = None
    """Repeating it changes nothing."""

    @classmethod
    def of(cls, grant: Grant) -> Self:
        return cls.checked(
            amount_micros=grant.amount,
            reason=grant.reason,
            kind=_KIND_NAMES.get(grant.kind),
            expires_in_seconds=grant.expires_in,
            key=grant.key,
        )

    def value(self, user: str, *, actor: str) -> Grant:
        return Grant(
            user=user,
            amount=MicroDollars(self.amount_micros),
            reason=self.reason,
            actor=actor,
            kind=GRANT_KINDS[self.kind],
            expires_in=self.expires_in_seconds,
            key=self.key,
        )


class AdjustmentDocument(RequestDocument):
    """A correction of a user's balance."""

    amount_micros: int = Field(ge=-LARGEST_AMOUNT, le=LARGEST_AMOUNT, examples=[-3_000_000])
    """Below zero it takes credits away."""
    reason: Reason
    """Shown in the statement."""
    key: Key | None = None
    """Repeating it changes nothing."""

    @classmethod
    def of(cls, adjustment: Adjustment) -> Self:
        return cls.checked(amount_micros=adjustment.amount, reason=adjustment.reason, key=adjustment.key)

    def value(self, user: str, *, actor: str) -> Adjustment:
        return Adjustment(
            user=user, amount=MicroDollars(self.amount_micros), reason=self.reason, actor=actor, key=self.key
        )


class RefundRequestDocument(RequestDocument):
    """Credits that a job was charged, to give back to its owner."""

    amount_micros: int | None = Field(default=None, gt=0, le=LARGEST_AMOUNT, examples=[500_000])
    """Null: all that was charged and not given back yet."""
    reason: Reason
    """Shown in the statement."""
    key: Key | None = None
    """Repeating it changes nothing."""

    @classmethod
    def of(cls, request: RefundRequest) -> Self:
        return cls.checked(amount_micros=request.amount, reason=request.reason, key=request.key)

    def value(self, job: str, *, actor: str) -> RefundRequest:
        amount = None if self.amount_micros is None else MicroDollars(self.amount_micros)
        return RefundRequest(job=job, amount=amount, reason=self.reason, actor=actor, key=self.key)


class RefundedDocument(Document):
    """What was given back."""

    job: str
    """The id of the job."""
    refunded_micros: int
    """Zero if already done under the same key."""

    @classmethod
    def of(cls, refunded: Refunded) -> Self:
        return cls(job=refunded.job_id, refunded_micros=refunded.amount)

    def value(self) -> Refunded:
        return Refunded(job_id=self.job, amount=MicroDollars(self.refunded_micros))


class EntryDocument(Document):
    """One change of one user's credits; never changed itself. Amounts are whole micro-dollars."""

    seq: int
    """Counts all entries."""
    at: Instant
    """When it was written."""
    user: str = Field(examples=["ann"])
    """Whose credits changed."""
    kind: str = Field(examples=["GRANT"])
    """What happened, such as `GRANT`, `HOLD` or `SETTLEMENT`."""
    balance_micros: int
    """What it adds to what the user can spend."""
    held_micros: int
    """What it adds to what is held for jobs."""
    job: str | None = None
    """The job that it is for; null: none."""
    attempt: int | None = None
    """The attempt of that job."""
    lot: str
    """The credits that it takes from or adds to."""
    key: str | None = None
    """The id under which it was asked for; repeating it changes nothing."""
    note: str
    """The reason."""
    actor: str
    """Who made it."""
    part: int = 0
    """Counts the lots that one change touches."""

    @classmethod
    def of(cls, entry: LedgerEntry) -> Self:
        return cls(
            seq=entry.seq,
            at=entry.at,
            user=entry.user,
            kind=entry.kind.value,
            balance_micros=entry.balance,
            held_micros=entry.held,
            job=entry.job,
            attempt=entry.attempt,
            lot=entry.lot,
            key=entry.key,
            note=entry.note,
            actor=entry.actor,
            part=entry.part,
        )

    def value(self) -> LedgerEntry:
        return LedgerEntry(
            seq=self.seq,
            at=self.at,
            user=self.user,
            kind=EntryKind(self.kind),
            balance=MicroDollars(self.balance_micros),
            held=MicroDollars(self.held_micros),
            job=self.job,
            attempt=self.attempt,
            lot=self.lot,
            key=self.key,
            note=self.note,
            actor=self.actor,
            part=self.part,
        )


class ProofDocument(Document):
    """The result of checking the ledger."""

    sound: bool
    """Whether everything adds up."""
    entries: int
    """How many entries were checked."""
    accounts: int
    """How many users were checked."""
    balance_micros: int
    """What all users can spend."""
    held_micros: int
    """What is held for all jobs."""
    problems: tuple[str, ...]
    """Everything that does not add up."""

    @classmethod
    def of(cls, proof: LedgerProof) -> Self:
        return cls(
            sound=proof.holds,
            entries=proof.entries,
            accounts=proof.accounts,
            balance_micros=proof.balance,
            held_micros=proof.held,
            problems=proof.problems,
        )

    def value(self) -> LedgerProof:
        return LedgerProof(
            entries=self.entries,
            accounts=self.accounts,
            balance=MicroDollars(self.balance_micros),
            held=MicroDollars(self.held_micros),
            problems=self.problems,
        )
