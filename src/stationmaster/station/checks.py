"""Checks of this installation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class CheckLevel(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but not as it could, or may soon stop to
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str
    level: CheckLevel
    detail: str
    hint: str = ""  # what to do about it

    @property
    def ok(self) -> bool:
        """A warning is not a failure."""
        return self.level is not CheckLevel.FAIL


def passed(check: str, detail: str, hint: str = "") -> CheckResult:
    return CheckResult(check, CheckLevel.OK, detail, hint)


def warned(check: str, detail: str, hint: str = "") -> CheckResult:
    return CheckResult(check, CheckLevel.WARN, detail, hint)


def failed(check: str, detail: str, hint: str = "") -> CheckResult:
    return CheckResult(check, CheckLevel.FAIL, detail, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerService:
    """What a service manager needs to keep a worker of this installation running."""

    python: str
    home: str
    folder: str  # where it runs: `.env` and relative paths are looked for there
    environment_file: str  # with the variables that it gets, secrets included; only you may read it
    variables: tuple[str, ...]  # the names of those that are settings


class Checks(Protocol):
    def results(self, *, offline: bool = False) -> Sequence[CheckResult]:
        """This computer, settings, home, providers, store, workers, open alerts, bucket, notification channels.

        A check that cannot run has a failed result. Nothing is repaired, except that an open home is made private and
        an old store is migrated, as by any command. Nothing is sent to a person. `offline`: no service is asked.
        """

    def worker_service(self) -> WorkerService:
        """Write the file of variables: a service does not get those of this terminal. Does not open the store."""
