"""Records who changed what, and who was refused. Never a secret or a body: method, route, its parameters, status."""

from __future__ import annotations

import time

import anyio
import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stationmaster.api.gate.buckets import Buckets
from stationmaster.api.gate.callers import address_of, caller_of
from stationmaster.api.gate.hosts import SAFE_METHODS
from stationmaster.errors import StationmasterError
from stationmaster.event_log import get_logger
from stationmaster.station.audit import AuditEntry
from stationmaster.station.doorkeeper import Doorkeeper

log = get_logger("stationmaster.serve")

_LONGEST_SUBJECT = 200
_REFUSALS_PER_MINUTE = 60.0  # of one user, and of all strangers together: they must not fill the store
_UPLOADS = "/api/uploads/"  # by machines, with tickets that have a history of their own
_FORBIDDEN = 403


class Auditing:
    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._refusals = Buckets(_REFUSALS_PER_MINUTE)
        self._threads: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/") or scope["path"].startswith(_UPLOADS):
            return await self._app(scope, receive, send)

        async def recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Before the answer: who has it can rely on the entry.
                await self._record_if_due(scope, message["status"])
            await send(message)

        await self._app(scope, receive, recorded)
        return None

    async def _record_if_due(self, scope: Scope, status: int) -> None:
        caller = caller_of(scope)
        is_refused = status == _FORBIDDEN or scope.get("state", {}).get("is_sign_in_refused", False)
        is_change = scope["method"] not in SAFE_METHODS and caller is not None
        if not (is_change or is_refused):
            return
        if not is_change and self._refusals.take("" if caller is None else caller.user) > 0:
            return
        self._threads = self._threads or anyio.CapacityLimiter(4)
        try:
            await anyio.to_thread.run_sync(self._doorkeeper.record, _entry(scope, status), limiter=self._threads)
        except StationmasterError as problem:
            log.error("audit.not_recorded", problem=str(problem), action=_action(scope), status=status)


def _entry(scope: Scope, status: int) -> AuditEntry:
    caller = caller_of(scope)
    subject = ", ".join(_printable(str(value)) for value in scope.get("path_params", {}).values())
    return AuditEntry(
        at=time.time(),
        user=None if caller is None else caller.user,
        token=None if caller is None else caller.token,
        action=_action(scope),
        subject=subject[:_LONGEST_SUBJECT] or None,
        status=status,
        address=address_of(scope),
    )


def _action(scope: Scope) -> str:
    """Method and template of the route: what was in the address may be anything, also something secret."""
    template = getattr(scope.get("route"), "path", None)
    method = _printable(scope["method"])[:10]
    return f"{method} {template or 'unknown address'}"


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
