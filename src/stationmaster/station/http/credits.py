"""The credits of a server's users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from stationmaster.errors import ConfigInvalid, NotFound
from stationmaster.money import Unit
from stationmaster.station.credits import (
    Adjustment,
    CreditAccount,
    CreditChange,
    Grant,
    LedgerEntry,
    LedgerProof,
    Refunded,
    RefundRequest,
    require_adjustment,
    require_grant,
    require_refund,
)
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.wire.credits import (
    AccountChangeDocument,
    AccountDocument,
    AdjustmentDocument,
    CreditSettingsDocument,
    EntryDocument,
    GrantDocument,
    ProofDocument,
    RefundedDocument,
    RefundRequestDocument,
)


class HttpCredits:
    """The server writes who asks as the actor of a change, whatever the request says."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def are_on(self) -> bool:
        return self._settings().enabled

    def unit(self) -> Unit:
        found = self._settings()
        if not found.enabled:
            raise ConfigInvalid("credits are off", hint="to use them, set billing.enabled on the server")
        return found.unit()

    def accounts(self, *, after: str = "", limit: int | None = None) -> Sequence[CreditAccount]:
        found = self._connection.items("/api/credits/accounts", AccountDocument, most=limit, after=after or None)
        return [one.value() for one in found]

    def account(self, user: str) -> CreditAccount:
        return self._connection.get(_path(user), AccountDocument).value()

    def grant(self, grant: Grant) -> CreditChange:
        require_grant(grant)
        body = GrantDocument.of(grant)
        return self._connection.post(f"{_path(grant.user)}/grants", AccountChangeDocument, body).change()

    def adjust(self, adjustment: Adjustment) -> CreditChange:
        require_adjustment(adjustment)
        body = AdjustmentDocument.of(adjustment)
        return self._connection.post(f"{_path(adjustment.user)}/adjustments", AccountChangeDocument, body).change()

    def refund(self, request: RefundRequest) -> Refunded:
        require_refund(request)
        if not request.job:
            raise NotFound("the name of the job is empty", hint="run `stationmaster jobs --all` to see them")
        path = f"/api/jobs/{segment(request.job)}/refunds"
        return self._connection.post(path, RefundedDocument, RefundRequestDocument.of(request)).value()

    def entries(self, user: str | None = None, *, after: int = 0, newest_first: bool = False) -> Iterator[LedgerEntry]:
        order = "true" if newest_first else None
        found = self._connection.items("/api/ledger", EntryDocument, after=str(after), user=user, newest_first=order)
        first = list(islice(found, 1))  # asks now, since an unknown user is an error of this call
        return (entry.value() for entry in chain(first, found))

    def prove(self) -> LedgerProof:
        return self._connection.get("/api/ledger/proof", ProofDocument).value()

    def _settings(self) -> CreditSettingsDocument:
        return self._connection.get("/api/credits", CreditSettingsDocument)


def _path(user: str) -> str:
    if not user:
        raise NotFound("the name of the user is empty", hint="run `stationmaster users list` to see them")
    return f"/api/users/{segment(user)}/credits"
