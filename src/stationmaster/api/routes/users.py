"""Users: who may use the service, and how notifications reach them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from stationmaster.api.problems import problems
from stationmaster.api.visit import Managing, Reading, Training
from stationmaster.station.wire.document import Page, ShortText
from stationmaster.station.wire.users import ChangesDocument, ListedUserDocument, NewUserDocument, UserDocument

routes = APIRouter(prefix="/api/users", tags=["users"], responses=problems(400, 401, 403, 404, 422))

UserName = Annotated[ShortText, Path(description="Name of the user; `me` is whoever asks.", examples=["ann"])]


@routes.get("", operation_id="list_users", summary="Users that were added, by name; your own if you are no admin")
def list_users(visit: Reading) -> Page[ListedUserDocument]:
    found = visit.station.users.listed()
    credits = visit.station.credits
    unit = credits.unit() if credits.are_on() else None
    return Page(items=tuple(ListedUserDocument.listed(one, unit) for one in found))


@routes.post("", operation_id="add_user", summary="Add a user", status_code=201)
def add_user(visit: Managing, new: NewUserDocument) -> UserDocument:
    return UserDocument.of(visit.station.users.add(new.name, new.value()))


@routes.get("/{user}", operation_id="get_user", summary="A user and their channels")
def get_user(visit: Reading, user: UserName) -> UserDocument:
    return UserDocument.of(visit.station.users.find(visit.user_named(user)))


@routes.patch("/{user}", operation_id="change_user", summary="Change how notifications reach a user, or their role")
def change_user(visit: Training, user: UserName, changes: ChangesDocument) -> UserDocument:
    return UserDocument.of(visit.station.users.change(visit.user_named(user), changes.value()))


@routes.delete(
    "/{user}", operation_id="remove_user", summary="Remove a user; their tokens stop working", status_code=204
)
def remove_user(visit: Managing, user: UserName) -> Response:
    visit.station.users.remove(visit.user_named(user))
    return Response(status_code=204)
