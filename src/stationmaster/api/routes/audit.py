"""The audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading
from stationmaster.station.wire.audit import AuditEntryDocument
from stationmaster.station.wire.document import Page, ShortText

routes = APIRouter(prefix="/api", tags=["audit"], responses=problems(401, 403, 422))


@routes.get("/audit", operation_id="list_audit_entries", summary="Who changed what, newest first; your own if no admin")
def list_audit_entries(
    visit: Reading,
    user: Annotated[ShortText | None, Query(description="Only this user; `me` is whoever asks.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many entries.")] = 100,
    after: Annotated[int | None, Query(ge=0, le=2**62, description="`next` of the page before.")] = None,
) -> Page[AuditEntryDocument]:
    whose = None if user is None else visit.user_named(user)
    found = visit.station.audit.entries(limit=limit + 1, before=after, user=whose)
    page = tuple(AuditEntryDocument.of(one) for one in found[:limit])
    return Page(items=page, next=str(page[-1].id) if len(found) > limit else None)
