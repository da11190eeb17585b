"""Maps a request to an operation, the unit of faults and rate limits."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A kind of request, with its documented minimum interval and maximum per minute."""

    name: str
    methods: tuple[str, ...]
    path: re.Pattern[str]
    seconds: float
    per_minute: int | None = None


def _operation(name: str, methods: str, path: str, seconds: float, *, per_minute: int | None = None) -> Operation:
    pattern = re.compile(f"/api/v[01]{path}")
    return Operation(name=name, methods=tuple(methods.split()), path=pattern, seconds=seconds, per_minute=per_minute)


OPERATIONS = (
    _operation("search", "GET POST", "/bundles", 0.0, per_minute=10),
    _operation("search", "PUT", "/search/asks", 0.0, per_minute=10),
    _operation("create", "PUT", r"/asks/(?P<ask>\d+)", 4.5),
    _operation("create", "POST", "/asks/bulk", 4.5),
    _operation("list", "GET", "/instances", 1.0),
    _operation("read", "GET", r"/instances/(?P<id>\d+)", 2.0),
    _operation("manage", "PUT", r"/instances(/(?P<id>\d+))?", 1.0),
    _operation("destroy", "DELETE", r"/instances(/(?P<id>\d+))?", 3.0),
    _operation("reboot", "PUT", r"/instances/(reboot|recycle)/(?P<id>\d+)", 1.0),
    _operation("bid", "PUT", r"/instances/bid_price/(?P<id>\d+)", 5.5),
    _operation("logs", "PUT", r"/instances/request_logs/(?P<id>\d+)", 1.0),
    _operation("instance_keys", "GET POST DELETE", r"/instances/(?P<id>\d+)/ssh(/\d+)?", 1.0),
    _operation("keys", "GET POST PUT DELETE", r"/ssh(/\d+)?", 1.0),
    _operation("user", "GET", "/users/current", 0.0),
    _operation("charges", "GET", "/charges", 1.0),
    _operation("invoices", "GET", "/invoices", 3.0),
    _operation("contracts", "POST", "/contracts/fetch", 1.0),
)


def operation_of(method: str, path: str) -> tuple[Operation, int | None] | None:
    """The operation and the instance id in its path; None for a path outside the service's API.

    >>> found = operation_of("DELETE", "/api/v0/instances/7")
    >>> found[0].name, found[1]
    ('destroy', 7)
    """
    for operation in OPERATIONS:
        if method in operation.methods and (found := operation.path.fullmatch(path)):
            named = found.groupdict().get("id")
            return operation, int(named) if named else None
    return None
