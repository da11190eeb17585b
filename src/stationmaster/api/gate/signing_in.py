"""Finds out who makes a request, by its token."""

from __future__ import annotations

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from stationmaster.api.problems import problem_response
from stationmaster.errors import StationmasterError
from stationmaster.station.doorkeeper import Doorkeeper


class SigningIn:
    """Puts the caller into the request's state; a route that needs one refuses a request without."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        kind, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
        is_ticket = scope["path"].startswith("/api/uploads/")  # a machine's ticket, not a user's token
        if kind.lower() == "bearer" and secret and not is_ticket:
            try:
                caller = await anyio.to_thread.run_sync(self._doorkeeper.caller_of_token, secret.strip())
            except StationmasterError as refused:
                return await problem_response(refused)(scope, receive, send)
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)
        return None
