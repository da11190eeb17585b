"""Rate limits: a minimum interval per caller and operation, and the 429 answers in their shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from stationmaster.simulator.operations import Operation

SHAPES = ("text", "detail", "common")
"""Shapes that the live service is known to use; `retry_after` and `search_quota` only by a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """An error answer, ready to send."""

    body: bytes
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()


class RateLimits:
    """Counts calls. `scale` multiplies the documented intervals; 0 disables them."""

    def __init__(self, *, scale: float, monotonic: Callable[[], float]) -> None:
        self._scale = scale
        self._monotonic = monotonic
        self._passed: dict[tuple[str, str], list[float]] = {}
        self._refused = 0

    def refuse(self, caller: str, operation: Operation) -> ErrorBody | None:
        """A 429 if the call is too early, in each shape in turn; only calls that pass are counted."""
        now = self._monotonic()
        minute = 60.0 * self._scale
        passed = [moment for moment in self._passed.get((caller, operation.name), ()) if now - moment < minute]
        wait = self._wait(operation, passed, now)
        if wait > 0:
            self._refused += 1
            return too_many(SHAPES[self._refused % len(SHAPES)], threshold=operation.seconds, wait=wait)
        self._passed[(caller, operation.name)] = [*passed, now]
        return None

    def _wait(self, operation: Operation, passed: list[float], now: float) -> float:
        waits = [0.0]
        if passed:
            waits.append(passed[-1] + operation.seconds * self._scale - now)
        if operation.per_minute is not None and len(passed) >= operation.per_minute:
            waits.append(passed[-operation.per_minute] + 60.0 * self._scale - now)
        return max(waits)


def too_many(shape: str, *, threshold: float, wait: float) -> ErrorBody:
    """A 429 in one of the known shapes: plain text, `detail`, the common error body, and two rarer ones."""
    message = f"API requests too frequent endpoint threshold={threshold}"
    match shape:
        case "text":
            return ErrorBody(body=b"API requests too frequent", content_type="text/plain")
        case "detail":
            return _json({"detail": message})
        case "retry_after":
            body = {"success": False, "error": "rate_limit_exceeded", "msg": message, "retry_after": round(wait, 3)}
            return _json(body, ("Retry-After", f"{wait:.3f}"))
        case "search_quota":
            body = {"success": False, "error": "search_quota_exceeded", "msg": "Daily search quota exceeded."}
            return _json(body, ("X-RateLimit-Reset", "4102444800"))
        case _:
            return _json({"success": False, "error": "rate_limit_exceeded", "msg": message})


def _json(body: dict[str, object], *headers: tuple[str, str]) -> ErrorBody:
    return ErrorBody(body=json.dumps(body).encode(), content_type="application/json", headers=headers)
