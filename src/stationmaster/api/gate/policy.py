"""What the gate lets pass: the settings of the HTTP service as the middlewares use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from stationmaster.model import RIGHTS, SINGLE_USER, Caller, Role
from stationmaster.settings.serving import MIB, ServeSettings

_SLOW_AFTER = 3  # times the longest pause
EVERYONE = Caller(user=SINGLE_USER, role=Role.ADMIN, rights=RIGHTS[Role.ADMIN])
"""The caller of every request where no sign-in is needed: the single user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """The defaults suit a service on a loopback address, without a limit on the number of requests."""

    everyone: Caller | None = None  # the caller of every request; None: requests need a token or a session
    hosts: frozenset[str] = frozenset()  # names besides loopback and the address that was connected to
    public_url: str | None = None
    is_https: bool = False  # browsers come by https: cookies only travel encrypted
    requests_per_minute: int = 0  # 0: no limit
    failed_sign_ins_per_minute: int = 20
    largest_body_bytes: int = MIB
    largest_upload_bytes: int = 64 * MIB
    largest_stranger_body_bytes: int = 64 * 1024  # of a request without a caller
    silent_body_seconds: float = 20.0  # a body without progress for this long is given up
    slow_body_seconds: float = 60.0  # after this time a body must have arrived at the least rate
    least_bytes_per_second: float = 1024.0

    @classmethod
    def of(cls, settings: ServeSettings) -> GatePolicy:
        return cls(
            everyone=None if settings.auth else EVERYONE,
            hosts=frozenset({*settings.hosts, *_hosts_in([settings.public_url])}),
            public_url=settings.public_url,
            is_https=settings.is_https,
            requests_per_minute=settings.requests_per_minute,
            largest_upload_bytes=settings.largest_upload_bytes,
            silent_body_seconds=settings.body_timeout,
            slow_body_seconds=_SLOW_AFTER * settings.body_timeout,
        )


def _hosts_in(urls: Sequence[str | None]) -> set[str]:
    return {host for url in urls if url is not None and (host := urlsplit(url).hostname) is not None}
