"""Credits: balances, changes to them, and the ledger. Whoever asks is the actor of a change."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Path, Query

from stationmaster.api.problems import problems
from stationmaster.api.routes.users import UserName
from stationmaster.api.visit import Managing, Reading
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
from stationmaster.station.wire.document import Page, ShortText

routes = APIRouter(prefix="/api", tags=["credits"], responses=problems(400, 401, 403, 404, 422))

Limit = Annotated[int, Query(ge=1, le=1000, description="At most this many items.")]


@routes.get("/credits", operation_id="get_credit_settings", summary="Whether credits are on, and their unit")
def get_credit_settings(visit: Reading) -> CreditSettingsDocument:
    credits = visit.station.credits
    if not credits.are_on():
        return CreditSettingsDocument(enabled=False)
    return CreditSettingsDocument(enabled=True, points_per_dollar=credits.unit().points_per_dollar)


@routes.get("/credits/accounts", operation_id="list_credit_accounts", summary="Accounts, by user")
def list_credit_accounts(
    visit: Reading,
    limit: Limit = 100,
    after: Annotated[ShortText, Query(description="`next` of the page before.")] = "",
) -> Page[AccountDocument]:
    found = visit.station.credits.accounts(after=after, limit=limit + 1)
    page = tuple(AccountDocument.of(one) for one in found[:limit])
    return Page(items=page, next=page[-1].user if len(found) > limit else None)


@routes.get("/users/{user}/credits", operation_id="get_credit_account", summary="What a user can spend")
def get_credit_account(visit: Reading, user: UserName) -> AccountDocument:
    return AccountDocument.of(visit.station.credits.account(visit.user_named(user)))


@routes.post("/users/{user}/credits/grants", operation_id="grant_credits", summary="Give a user credits")
def grant_credits(visit: Managing, user: UserName, grant: GrantDocument) -> AccountChangeDocument:
    wanted = grant.value(visit.user_named(user), actor=visit.caller.user)
    return AccountChangeDocument.after(visit.station.credits.grant(wanted))


@routes.post(
    "/users/{user}/credits/adjustments",
    operation_id="adjust_credits",
    summary="Correct a balance, up or down",
    responses=problems(402),
)
def adjust_credits(visit: Managing, user: UserName, adjustment: AdjustmentDocument) -> AccountChangeDocument:
    wanted = adjustment.value(visit.user_named(user), actor=visit.caller.user)
    return AccountChangeDocument.after(visit.station.credits.adjust(wanted))


@routes.post("/jobs/{job}/refunds", operation_id="refund_job", summary="Refund what a job was charged")
def refund_job(
    visit: Managing,
    job: Annotated[ShortText, Path(description="Id of the job, also of a removed one; its beginning; or its name.")],
    request: RefundRequestDocument,
) -> RefundedDocument:
    return RefundedDocument.of(visit.station.credits.refund(request.value(job, actor=visit.caller.user)))


@routes.get("/ledger", operation_id="list_ledger_entries", summary="Every change to credits, oldest first by default")
def list_ledger_entries(
    visit: Reading,
    user: Annotated[ShortText | None, Query(description="Only this user; `me` is whoever asks.")] = None,
    limit: Limit = 500,
    after: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
    newest_first: Annotated[bool, Query(description="The other way round; also for `after`.")] = False,
) -> Page[EntryDocument]:
    whose = None if user is None else visit.user_named(user)
    found = list(islice(visit.station.credits.entries(whose, after=after, newest_first=newest_first), limit + 1))
    page = tuple(EntryDocument.of(one) for one in found[:limit])
    return Page(items=page, next=str(page[-1].seq) if len(found) > limit else None)


@routes.get("/ledger/proof", operation_id="prove_ledger", summary="Check every account against its entries")
def prove_ledger(visit: Managing) -> ProofDocument:
    return ProofDocument.of(visit.station.credits.prove())
