"""A limit on requests per minute: for each token or signed-in user, else for each address.

Files of the page are not counted: a view loads many, and they come from memory.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from stationmaster.api.gate.buckets import Buckets
from stationmaster.api.gate.callers import address_of, caller_of
from stationmaster.api.gate.hosts import API
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.problems import problem_response
from stationmaster.errors import TooManyRequests


class RateLimit:
    def __init__(self, app: ASGIApp, policy: GatePolicy) -> None:
        self._app = app
        self._per_minute = policy.requests_per_minute
        self._buckets = Buckets(self._per_minute) if self._per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._buckets is not None and scope["type"] == "http" and scope["path"].startswith(API):
            wait = self._buckets.take(_key(scope))
            if wait > 0:
                refused = TooManyRequests(
                    f"more than {self._per_minute} requests in a minute",
                    retry_after_seconds=wait,
                    hint="ask less often, or follow a stream of events; the setting is serve.requests_per_minute",
                )
                return await problem_response(refused)(scope, receive, send)
        await self._app(scope, receive, send)
        return None


def _key(scope: Scope) -> str:
    caller = caller_of(scope)
    if caller is None:
        return f"address {address_of(scope)}"
    return f"user {caller.user}" if caller.token is None else f"token {caller.token}"
