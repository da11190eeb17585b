"""Bodies that are too large or arrive too slowly are refused while they arrive."""

from __future__ import annotations

import asyncio
import re
import time

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stationmaster.api.gate.callers import caller_of
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.problems import BodyRefused, problem_response
from stationmaster.errors import StationmasterError, TooLarge, UserError

UPLOAD_PATHS = re.compile(r"/api/datasets/[^/]+/files/.*|/api/(jobs/[^/]+|instances/[^/]+/[^/]+)/metrics/import")
"""Where whole files arrive, in pieces or at once; everywhere else a body is a small document."""

_DRAIN_BYTES = 4 * 1024 * 1024
_DRAIN_SECONDS = 2.0


class TooSlow(UserError):
    """The body arrives too slowly."""

    http_status = 408


class BodyLimits:
    def __init__(self, app: ASGIApp, policy: GatePolicy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        policy, headers = self._policy, Headers(scope=scope)
        is_upload = UPLOAD_PATHS.fullmatch(scope["path"]) is not None
        limit = policy.largest_upload_bytes if is_upload else policy.largest_body_bytes
        if caller_of(scope) is None:
            limit = min(limit, policy.largest_stranger_body_bytes)
        body = _Body(receive, limit, policy)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > limit:  # Python refuses to read thousands of digits
            if "expect" not in headers:
                await _drain(receive)
            return await _closing(problem_response(body.too_large()), scope, receive, send)

        async def closing_if_refused(message: Message) -> None:
            if body.is_refused and message["type"] == "http.response.start":
                message = _with_close(message)
            await send(message)

        await self._app(scope, body.receive, closing_if_refused)
        return None


class _Body:
    """The body of one request, counted and timed while the route waits for it."""

    def __init__(self, receive: Receive, limit: int, policy: GatePolicy) -> None:
        self._receive = receive
        self._limit = limit
        self._policy = policy
        self._bytes = 0
        self._waited_seconds = 0.0
        self._is_over = False
        self.is_refused = False

    async def receive(self) -> Message:
        if self._is_over:
            return await self._receive()  # the next message is the client's leaving, however late
        message = await self._next()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._is_over = not message.get("more_body", False)
        if self._bytes > self._limit:
            raise self._refuse(self.too_large())
        if not self._is_over and self._is_too_slow():
            raise self._refuse(TooSlow())
        return message

    def too_large(self) -> TooLarge:
        return TooLarge(f"a body may have at most {self._limit} bytes here")

    async def _next(self) -> Message:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._policy.silent_body_seconds):
                return await self._receive()
        except TimeoutError:
            raise self._refuse(TooSlow()) from None
        finally:
            self._waited_seconds += time.monotonic() - began

    def _is_too_slow(self) -> bool:
        policy, waited = self._policy, self._waited_seconds
        return waited > policy.slow_body_seconds and self._bytes < waited * policy.least_bytes_per_second

    def _refuse(self, problem: StationmasterError) -> BodyRefused:
        self._is_over = self.is_refused = True
        return BodyRefused(problem)


async def _drain(receive: Receive) -> None:
    """Read some of what is refused anyway: many clients look for the answer only when they have sent it all."""
    left = _DRAIN_BYTES
    with anyio.move_on_after(_DRAIN_SECONDS):
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


async def _closing(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    async def closing(message: Message) -> None:
        await send(_with_close(message) if message["type"] == "http.response.start" else message)

    await app(scope, receive, closing)


def _with_close(start: Message) -> Message:
    return {**start, "headers": [*start.get("headers", []), (b"connection", b"close")]}
