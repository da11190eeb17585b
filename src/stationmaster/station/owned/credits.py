"""Credits, as one user sees them: their own account and its entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stationmaster.errors import NotFound
from stationmaster.model import Caller, Right
from stationmaster.money import Unit
from stationmaster.station.credits import (
    Adjustment,
    CreditAccount,
    CreditChange,
    Credits,
    Grant,
    LedgerEntry,
    LedgerProof,
    Refunded,
    RefundRequest,
)
from stationmaster.station.owned.rights import require


class OwnedCredits:
    """Also for an administrator whose token may not manage: they see all accounts and change none."""

    def __init__(self, caller: Caller, credits: Credits) -> None:
        self._caller = caller
        self._all = credits

    def are_on(self) -> bool:
        return self._all.are_on()

    def unit(self) -> Unit:
        return self._all.unit()

    def accounts(self, *, after: str = "", limit: int | None = None) -> Sequence[CreditAccount]:
        if self._caller.sees_all:
            return self._all.accounts(after=after, limit=limit)
        own = self._all.account(self._caller.user)
        return [own] if own.user > after else []

    def account(self, user: str) -> CreditAccount:
        return self._all.account(self._seen(user))

    def grant(self, grant: Grant) -> CreditChange:
        require(self._caller, Right.MANAGE)
        return self._all.grant(grant)

    def adjust(self, adjustment: Adjustment) -> CreditChange:
        require(self._caller, Right.MANAGE)
        return self._all.adjust(adjustment)

    def refund(self, request: RefundRequest) -> Refunded:
        require(self._caller, Right.MANAGE)
        return self._all.refund(request)

    def entries(self, user: str | None = None, *, after: int = 0, newest_first: bool = False) -> Iterator[LedgerEntry]:
        if user is None and not self._caller.sees_all:
            user = self._caller.user
        seen = None if user is None else self._seen(user)
        return self._all.entries(seen, after=after, newest_first=newest_first)

    def prove(self) -> LedgerProof:
        require(self._caller, Right.MANAGE)
        return self._all.prove()

    def _seen(self, user: str) -> str:
        if not self._caller.sees_all and user != self._caller.user:
            raise NotFound(f"there is no user {user}", hint=f"to add them, run stationmaster users add {user}")
        return user
