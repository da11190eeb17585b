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
    folder: str  # where it runs: `.env` and relative paths are looked for there
    environment_file: str  # with the variables that it gets, secrets included; only you may read it
    variables: tuple[str, ...]  # the names of those that are settings


class Checks(Protocol):
    def results(self) -> Sequence[CheckResult]:
        """Version, settings, home, default provider, store, worker, open alerts, disk, GPUs, bucket, tools. A check
        that cannot run has a failed result. Nothing is repaired, except that an open home is made private as ever.
        """

    def worker_service(self) -> WorkerService:
        """Write the file of variables: a service does not get those of this terminal. Does not open the store."""
