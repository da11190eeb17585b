"""Monitoring of machines rented at Vast.ai, including those that Stationmaster did not rent."""

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

    ids: tuple[str, ...] = ()  # all machines if empty
    only_running: bool = False  # excludes machines that were never seen running
    log_path: str | None = None  # a glob on the machines, instead of the default one
    made_up: bool = False  # invented machines, to try a face without an account


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorLook:
    """One update of all watched machines, and the problems since the last one, in one line each."""

    snapshot: Snapshot
    warnings: tuple[str, ...]


class Monitoring(Protocol):
    def looks(self, watched: Watched, *, every_seconds: float) -> Generator[MonitorLook, None, None]:
        """An update now and at every interval, until the caller closes it. Machines that do not answer are shown as
        last known.

        Raises UserError for an invalid machine id, ConfigInvalid if no account is set up, AccessRefused for a key that
        never worked.
        """
