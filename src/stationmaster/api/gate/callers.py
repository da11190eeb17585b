"""Where the gate keeps who makes a request."""

from __future__ import annotations

from typing import Any

from starlette.types import Scope

from stationmaster.model import Caller


def remember(scope: Scope, name: str, value: Any) -> None:
    scope.setdefault("state", {})[name] = value


def caller_of(scope: Scope) -> Caller | None:
    found: Caller | None = scope.get("state", {}).get("caller")
    return found


def address_of(scope: Scope) -> str | None:
    client = scope.get("client")
    return None if client is None else str(client[0])
