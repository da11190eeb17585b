"""Headers that tell browsers what they must not do with an answer."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stationmaster.api.gate.hosts import API
from stationmaster.api.gate.policy import GatePolicy

EVERYWHERE: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
OF_PAGES: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
}
OF_THE_API: Mapping[str, str] = {
    # What a training wrote may be a page with a script: opened in a browser it must not act as this site.
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
_HSTS = "max-age=31536000"


class SecurityHeaders:
    """Adds them to every answer, errors included; a header that the route has set stays. There are none for CORS:
    no other site may read an answer.
    """

    def __init__(self, app: ASGIApp, policy: GatePolicy) -> None:
        self._app = app
        always = {**EVERYWHERE, **({"Strict-Transport-Security": _HSTS} if policy.is_https else {})}
        self._of_pages = {**always, **OF_PAGES}
        self._of_the_api = {**always, **OF_THE_API}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        added = self._of_the_api if scope["path"].startswith(API) else self._of_pages

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in added.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)
        return None
