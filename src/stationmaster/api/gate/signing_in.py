"""Finds out who makes a request: by its token, or by the cookie of a browser that is signed in."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stationmaster.api.gate.buckets import Buckets
from stationmaster.api.gate.callers import address_of, remember
from stationmaster.api.gate.hosts import API, SAFE_METHODS
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.problems import problem_response
from stationmaster.errors import Forbidden, NotSignedIn, StationmasterError, TooManyRequests
from stationmaster.model import Caller
from stationmaster.station.doorkeeper import Doorkeeper

CSRF_HEADER = "X-CSRF-Token"
SESSION_PATH = "/api/session"

_LONGEST_SECRET = 200
_MOST_KNOWN = 1000
_UNAUTHORIZED = 401

T = TypeVar("T")


def cookie_name(doorkeeper: Doorkeeper) -> str:
    """One per installation: browsers send a host's cookies to all its ports, so two servers would share a name."""
    return f"stationmaster_session_{doorkeeper.installation}"


class SigningIn:
    """Puts the caller into the request's state; a route that needs one refuses a request without."""

    def __init__(self, app: ASGIApp, policy: GatePolicy, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._everyone = policy.everyone
        self._doorkeeper = doorkeeper
        self._cookie = cookie_name(doorkeeper)
        self._failures = Buckets(policy.failed_sign_ins_per_minute)
        self._known: dict[str, None] = {}  # digests of tokens that were valid: a neighbour's failures do not stop them
        self._threads: anyio.CapacityLimiter | None = None  # of its own: slow routes must not hold up sign-ins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/api/uploads/"):  # those send a machine's ticket
            return await self._app(scope, receive, send)
        try:
            await self._sign_in(scope)
        except StationmasterError as refused:
            return await problem_response(refused)(scope, receive, send)
        if scope["path"] == SESSION_PATH and scope["method"] == "POST":
            send = self._counting(scope, send)
        await self._app(scope, receive, send)
        return None

    async def _sign_in(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        kind, _, token = headers.get("authorization", "").partition(" ")
        if scope["path"] == SESSION_PATH and scope["method"] == "POST":
            self._require_patience(scope)  # it brings its own proof, and an old cookie does not matter
        elif self._everyone is not None:
            remember(scope, "caller", self._everyone)
        elif kind.lower() == "bearer" and token.strip():
            await self._by_token(scope, token.strip())
        elif scope["path"].startswith(API) and (secret := _cookie(headers, self._cookie)) is not None:
            # The files of the page need no session.
            await self._by_cookie(scope, secret, headers.get(CSRF_HEADER, ""))

    async def _by_token(self, scope: Scope, token: str) -> None:
        digest = hashlib.sha256(token.encode()).hexdigest()
        if digest not in self._known:
            self._require_patience(scope)
        try:
            if len(token) > _LONGEST_SECRET:
                raise NotSignedIn("the token is not valid: it is too long")
            caller = await self._in_thread(self._doorkeeper.caller_of_token, token)
        except NotSignedIn:
            self._known.pop(digest, None)
            self._count_failure(scope)
            raise
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[digest] = None
        remember(scope, "caller", caller)
        remember(scope, "caller_again", partial(self._doorkeeper.caller_of_token, token))  # for long answers

    async def _by_cookie(self, scope: Scope, secret: str, csrf_token: str) -> None:
        """A session that is over is no error: the page may still be read, and routes refuse a request without caller.

        Raises Forbidden for a change that no page of ours asks for.
        """
        try:
            session = await self._in_thread(self._doorkeeper.session, secret)
        except NotSignedIn:
            return
        remember(scope, "caller", session.caller)
        remember(scope, "session", session)
        remember(scope, "caller_again", partial(_caller_of_session, self._doorkeeper, secret))
        is_change = scope["method"] not in SAFE_METHODS
        if is_change and not hmac.compare_digest(csrf_token.encode(), session.csrf_token.encode()):
            raise Forbidden(
                f"a change from a browser needs the header {CSRF_HEADER}", hint="GET /api/session answers its value"
            )

    def _counting(self, scope: Scope, send: Send) -> Send:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == _UNAUTHORIZED:
                self._count_failure(scope)
            await send(message)

        return counted

    def _require_patience(self, scope: Scope) -> None:
        """Raises TooManyRequests for an address with too many failed sign-ins."""
        wait = self._failures.wait_seconds(str(address_of(scope)))
        if wait > 0:
            raise TooManyRequests("too many failed sign-ins from this address", retry_after_seconds=wait)

    def _count_failure(self, scope: Scope) -> None:
        remember(scope, "is_sign_in_refused", True)
        self._failures.take(str(address_of(scope)))

    async def _in_thread(self, ask: Callable[[str], T], secret: str) -> T:
        self._threads = self._threads or anyio.CapacityLimiter(8)
        return await anyio.to_thread.run_sync(ask, secret, limiter=self._threads)


def _caller_of_session(doorkeeper: Doorkeeper, secret: str) -> Caller:
    return doorkeeper.session(secret).caller


def _cookie(headers: Headers, name: str) -> str | None:
    """
    >>> _cookie(Headers({"cookie": "a=b; stationmaster_session_1=xyz"}), "stationmaster_session_1")
    'xyz'
    """
    found = cookie_parser(headers.get("cookie", "")).get(name, "")
    return found if 0 < len(found) <= _LONGEST_SECRET else None
