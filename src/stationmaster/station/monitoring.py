"""Watching any machines rented at Vast.ai, also those that Stationmaster did not rent."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from stationmaster.control.monitoring.instance_metrics import (
    InstanceHealth,
    InstanceMetrics,
    InstancesSummary,
    Snapshot,
)

__all__ = ["InstanceHealth", "InstanceMetrics", "InstancesSummary", "MonitorLook", "Monitoring", "Snapshot", "Watched"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Which machines are watched, and where their logs are."""

    ids: tuple[str, ...] = ()  # all of them if empty
    only_running: bool = False  # leaves out what was never seen to run
    log_path: str | None = None  # a pattern of file names on the machines, instead of the usual one
    made_up: bool = False  # machines that are not there, to try a face without an account


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorLook:
    """One look at all watched machines, and what went wrong meanwhile, in one line each."""

    snapshot: Snapshot
    warnings: tuple[str, ...]


class Monitoring(Protocol):
    def looks(self, watched: Watched, *, every_seconds: float) -> Generator[MonitorLook, None, None]:
        """A look now, and again and again; who has seen enough closes it. What does not answer is shown as last known.

        Raises UserError for what is no machine's id, ConfigInvalid where no account is set up, AccessRefused for a key
        that never worked.
        """
