"""Only requests to one of our names, and from our own pages, are answered.

A page of another site can make a browser ask a service on this computer: by its own name that it lets point here (DNS
rebinding; the Host header shows it), or directly (the Origin and Sec-Fetch-Site headers show it).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.problems import problem_response
from stationmaster.errors import Forbidden, UserError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
"""For load balancers, which ask by addresses of their own; the answers tell nothing."""
API = "/api/"
"""What begins so may need a caller and is counted; everything else is the page, the same for everybody."""
_PORTS = {"http": 80, "https": 443}


class HostRefused(UserError):
    """This server does not answer to that name."""

    http_status = 421


class HostCheck:
    def __init__(self, app: ASGIApp, policy: GatePolicy) -> None:
        self._app = app
        self._names = LOOPBACK_NAMES | policy.hosts
        self._public = None if policy.public_url is None else _origin(policy.public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in HEALTH_PATHS:
            refused = self._refusal(scope)
            if refused is not None:
                return await problem_response(refused)(scope, receive, send)
        await self._app(scope, receive, send)
        return None

    def _refusal(self, scope: Scope) -> UserError | None:
        headers = Headers(scope=scope)
        asked = _host_and_port(headers.get("host", ""))
        own_address = scope["server"][0] if scope.get("server") else None
        if asked is None or (asked[0] not in self._names and asked[0] != own_address):
            return HostRefused(hint="add the name to the setting serve.hosts of the server")
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, asked, scope["scheme"]):
            return Forbidden("pages of other sites may not use this server", hint="set serve.public_url")
        if _comes_from_elsewhere(scope["method"], headers):
            return Forbidden("pages of other sites may not use this server")
        return None

    def _is_own(self, origin: str, asked: tuple[str, int | None], scheme: str) -> bool:
        found = _origin(origin)
        if found is None:
            return False
        if found == self._public:
            return True
        # A proxy that adds TLS hides it from us; the other way round, something in between has removed it.
        is_same_scheme = found[0] in (scheme, "https")
        return is_same_scheme and found[1:] == (asked[0], asked[1] or _PORTS[found[0]])


def _comes_from_elsewhere(method: str, headers: Headers) -> bool:
    """Whether a browser says that another site's page makes this request; a link to one of our pages is fine."""
    site = headers.get("sec-fetch-site")
    if site in (None, "same-origin", "none"):
        return False
    is_link = method in SAFE_METHODS and headers.get("sec-fetch-mode") == "navigate"
    return not is_link or headers.get("sec-fetch-dest") in ("object", "embed")


def _origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port.

    >>> _origin("https://Example.org"), _origin("null")
    (('https', 'example.org', 443), None)
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or host is None:
        return None
    return parts.scheme, host, port or _PORTS[parts.scheme]


def _host_and_port(header: str) -> tuple[str, int | None] | None:
    """
    >>> _host_and_port("LOCALHOST:8080"), _host_and_port("[::1]:80"), _host_and_port("a@localhost")
    (('localhost', 8080), ('::1', 80), None)
    """
    if not header or any(sign in header for sign in "/@?#\\ "):
        return None
    try:
        parts = urlsplit(f"//{header}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return None if host is None else (host, port)
