"""Checks: is everything in place for trainings to run?"""

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
    """What a service manager needs to know to keep a worker of this installation alive."""

    python: str
    home: str


class Checks(Protocol):
    def results(self) -> Sequence[CheckResult]:
        """Version, settings, store, worker, open alerts, disk, bucket, tools. What cannot be checked is a result too;
        nothing is repaired.
        """

    def worker_service(self) -> WorkerService:
        """Opens and writes nothing."""
