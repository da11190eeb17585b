"""Checks of this installation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str
    ok: bool
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerService:
    """What a service manager needs to keep a worker of this installation running."""

    python: str
    home: str


class Checks(Protocol):
    def results(self) -> Sequence[CheckResult]:
        """Version, settings, store, worker, open alerts, disk, GPUs, bucket, tools. A check that cannot run has a
        failed result; nothing is repaired.
        """

    def worker_service(self) -> WorkerService:
        """Neither opens the store nor writes anything."""
