"""Credits in the store's ledger; requests are checked here, for every face."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stationmaster.durations import LONGEST_SECONDS
from stationmaster.errors import ConfigInvalid, NotFound, UserError
from stationmaster.model import SINGLE_USER, CreditAccount, LedgerEntry, LedgerProof
from stationmaster.money import LARGEST_AMOUNT, MicroDollars, Unit
from stationmaster.station.credits import (
    GRANT_KINDS,
    Adjustment,
    CreditChange,
    Grant,
    Refunded,
    RefundRequest,
)
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.jobs import LocalJobs
from stationmaster.store.ledger import Ledger


class LocalCredits:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._billing = installation.settings.billing

    def are_on(self) -> bool:
        return self._billing.enabled

    def unit(self) -> Unit:
        if not self._billing.enabled:
            raise ConfigInvalid(
                "credits are off", hint="to use them, set billing.enabled, or STATIONMASTER_BILLING__ENABLED=1"
            )
        return self._billing.shown_in

    def accounts(self) -> Sequence[CreditAccount]:
        ledger = self._ledger
        return [ledger.account(user) for user in ledger.users()]

    def account(self, user: str) -> CreditAccount:
        return self._ledger.account(self._known(user))

    def grant(self, grant: Grant) -> CreditChange:
        ledger, user = self._ledger, self._known(grant.user)
        _require_above_zero(grant.amount)
        _require_reason(grant.reason)
        if grant.kind not in GRANT_KINDS.values():
            raise UserError(f"{grant.kind} is not a kind of credits", hint=f"use one of: {', '.join(GRANT_KINDS)}")
        _require_lifetime(grant.expires_in)
        changed = ledger.grant(
            user,
            grant.amount,
            note=grant.reason,
            kind=grant.kind,
            expires_in=grant.expires_in,
            key=grant.key,
            actor=grant.actor,
        )
        return CreditChange(changed=changed, account=ledger.account(user))

    def adjust(self, adjustment: Adjustment) -> CreditChange:
        ledger, user = self._ledger, self._known(adjustment.user)
        _require_possible(adjustment.amount)
        _require_reason(adjustment.reason)
        changed = ledger.adjust(
            user, adjustment.amount, note=adjustment.reason, key=adjustment.key, actor=adjustment.actor
        )
        return CreditChange(changed=changed, account=ledger.account(user))

    def refund(self, request: RefundRequest) -> Refunded:
        ledger, job_id = self._ledger, self._job_id(request.job)
        if request.amount is not None:
            _require_above_zero(request.amount)
        _require_reason(request.reason)
        given = ledger.refund(job_id, request.amount, note=request.reason, key=request.key, actor=request.actor)
        return Refunded(job_id=job_id, amount=given)

    def entries(self, user: str | None = None) -> Iterator[LedgerEntry]:
        return self._ledger.entries(None if user is None else self._known(user))

    def prove(self) -> LedgerProof:
        return self._ledger.prove()

    @property
    def _ledger(self) -> Ledger:
        """Raises ConfigInvalid where credits are off, before the store is opened."""
        self.unit()
        return self._installation.store.ledger

    def _known(self, user: str) -> str:
        store = self._installation.store
        if user != SINGLE_USER and store.users.find(user) is None and user not in store.ledger.users():
            raise NotFound(f"there is no user {user}", hint=f"to add them, run stationmaster users add {user}")
        return user

    def _job_id(self, reference: str) -> str:
        try:
            return LocalJobs(self._installation).find(reference).id
        except NotFound:
            return reference  # the ledger knows the id of a removed job


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
