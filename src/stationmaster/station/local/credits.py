"""Credits in the store's ledger; requests are checked here, for every face."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stationmaster.errors import ConfigInvalid, NotFound
from stationmaster.model import SINGLE_USER, CreditAccount, LedgerEntry, LedgerProof
from stationmaster.money import Unit
from stationmaster.station.credits import (
    Adjustment,
    CreditChange,
    Grant,
    Refunded,
    RefundRequest,
    require_adjustment,
    require_grant,
    require_refund,
)
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.jobs import LocalJobs
from stationmaster.station.local.wrong_names import no_such_user
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

    def accounts(self, *, after: str = "", limit: int | None = None) -> Sequence[CreditAccount]:
        ledger = self._ledger
        return [ledger.account(user) for user in ledger.users(after=after, limit=limit)]

    def account(self, user: str) -> CreditAccount:
        return self._ledger.account(self._known(user))

    def grant(self, grant: Grant) -> CreditChange:
        ledger, user = self._ledger, self._known(grant.user)
        require_grant(grant)
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
        require_adjustment(adjustment)
        changed = ledger.adjust(
            user, adjustment.amount, note=adjustment.reason, key=adjustment.key, actor=adjustment.actor
        )
        return CreditChange(changed=changed, account=ledger.account(user))

    def refund(self, request: RefundRequest) -> Refunded:
        ledger, job_id = self._ledger, self._job_id(request.job)
        require_refund(request)
        given = ledger.refund(job_id, request.amount, note=request.reason, key=request.key, actor=request.actor)
        return Refunded(job_id=job_id, amount=given)

    def entries(self, user: str | None = None, *, after: int = 0, newest_first: bool = False) -> Iterator[LedgerEntry]:
        known = None if user is None else self._known(user)
        return self._ledger.entries(known, after=after, newest_first=newest_first)

    def prove(self) -> LedgerProof:
        return self._ledger.prove()

    @property
    def _ledger(self) -> Ledger:
        """Raises ConfigInvalid where credits are off, before the store is opened."""
        self.unit()
        return self._installation.store.ledger

    def _known(self, user: str) -> str:
        store = self._installation.store
        if user != SINGLE_USER and store.users.find(user) is None and not store.ledger.knows(user):
            raise no_such_user(store, user, otherwise=f"to add them, run stationmaster users add {user}")
        return user

    def _job_id(self, reference: str) -> str:
        try:
            return LocalJobs(self._installation).find(reference).id
        except NotFound:
            if not self._ledger.knows_job(reference):  # the id of a removed job
                raise
            return reference
