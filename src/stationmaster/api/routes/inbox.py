"""Inboxes: messages to users, and tests of their channels."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from stationmaster.api.problems import problems
from stationmaster.api.routes.users import UserName
from stationmaster.api.visit import Managing, Reading, Training
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.notifications import (
    DeliveryDocument,
    InboxDocument,
    NoteDocument,
    ReadUpTo,
    TestMessage,
)

routes = APIRouter(prefix="/api", tags=["inbox"], responses=problems(401, 403, 404, 409, 422))


@routes.get("/users/{user}/inbox", operation_id="get_inbox", summary="A user's messages")
def get_inbox(
    visit: Reading,
    user: UserName,
    with_read: Annotated[bool, Query(description="Also those that were read.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="At most this many messages.")] = 50,
    before: Annotated[int | None, Query(ge=0, le=2**62, description="Only those before the one with this id.")] = None,
) -> InboxDocument:
    inbox, user = visit.station.notifications, visit.user_named(user)
    messages = inbox.inbox(user, with_read=with_read, limit=limit, before=before)
    return InboxDocument(unread=inbox.count_unread(user), messages=tuple(NoteDocument.of(note) for note in messages))


@routes.post(
    "/users/{user}/inbox/read", operation_id="mark_inbox_read", summary="Mark messages as read", status_code=204
)
def mark_inbox_read(visit: Reading, user: UserName, read: ReadUpTo) -> Response:
    visit.station.notifications.mark_read(visit.user_named(user), up_to=read.up_to)
    return Response(status_code=204)


@routes.post("/users/{user}/inbox/test", operation_id="test_channels", summary="Send a test message to a user")
def test_channels(visit: Training, user: UserName, message: TestMessage) -> Page[DeliveryDocument]:
    sent = visit.station.notifications.try_channels(visit.user_named(user), message.text)
    return Page(items=tuple(DeliveryDocument.of(each) for each in sent))


@routes.post("/inbox/test-operators", operation_id="test_operator_channels", summary="Send a test to the operators")
def test_operator_channels(visit: Managing, message: TestMessage) -> Page[DeliveryDocument]:
    sent = visit.station.notifications.try_operator_channels(message.text)
    return Page(items=tuple(DeliveryDocument.of(each) for each in sent))
