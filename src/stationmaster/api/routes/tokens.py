"""Tokens, and links that sign a browser in. What carries a secret is not kept by any cache."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from stationmaster.api.problems import problems
from stationmaster.api.routes.users import UserName
from stationmaster.api.visit import Reading, Training
from stationmaster.station.wire.document import Page, ShortText
from stationmaster.station.wire.tokens import (
    CreatedTokenDocument,
    NewTokenDocument,
    SignInLinkDocument,
    TokenDocument,
)

routes = APIRouter(prefix="/api", tags=["tokens"], responses=problems(400, 401, 403, 404, 422))


@routes.get("/tokens", operation_id="list_tokens", summary="Tokens, newest first; your own if you are no admin")
def list_tokens(
    visit: Reading,
    user: Annotated[ShortText | None, Query(description="Only this user's; `me` is whoever asks.")] = None,
) -> Page[TokenDocument]:
    found = visit.station.tokens.listed(None if user is None else visit.user_named(user))
    return Page(items=tuple(TokenDocument.of(one) for one in found))


@routes.post("/tokens", operation_id="create_token", summary="Create a token; answers its secret once", status_code=201)
def create_token(visit: Training, new: NewTokenDocument, response: Response) -> CreatedTokenDocument:
    response.headers["Cache-Control"] = "no-store"
    created = visit.station.tokens.create(new.value(visit.user_named(new.user)))
    return CreatedTokenDocument.created(created)


@routes.delete("/tokens/{token}", operation_id="revoke_token", summary="Revoke a token and its sessions")
def revoke_token(visit: Reading, token: Annotated[ShortText, Path(description="Id of the token.")]) -> TokenDocument:
    return TokenDocument.of(visit.station.tokens.revoke(token))


@routes.post(
    "/users/{user}/sign-in-links",
    operation_id="create_sign_in_link",
    summary="A link that signs a browser in as a user, once",
    status_code=201,
)
def create_sign_in_link(visit: Reading, user: UserName, response: Response) -> SignInLinkDocument:
    response.headers["Cache-Control"] = "no-store"
    return SignInLinkDocument.of(visit.station.tokens.create_link(visit.user_named(user)))
