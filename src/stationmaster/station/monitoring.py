"""Monitoring of machines rented at Vast.ai, including those that Stationmaster did not rent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.control.monitoring.instance_metrics import (
    InstanceHealth,
    InstanceMetrics,
    InstancesSummary,
    Snapshot,
)
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.notices import Notice, NoticeKind, health_reason

__all__ = [
    "InstanceHealth",
    "InstanceMetrics",
    "InstancesSummary",
    "MonitorFeed",
    "MonitorLook",
    "Monitoring",
    "Notice",
    "NoticeKind",
    "Snapshot",
    "Watched",
    "health_reason",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Which machines are watched, and where their logs are."""

    ids: tuple[str, ...] = ()  # all machines if empty
    group: str | None = None  # a group of the settings: only its machines
    only_running: bool = False  # excludes machines that were never seen running
    log_path: str | None = None  # a glob on the machines, instead of the default one
    listing: str | None = None  # a file with the JSON of `vastai show instances --raw`, or - for standard input
    made_up: bool = False  # invented machines, to try a face without an account
    seed: int | None = None  # of the invented machines: the same seed gives the same ones
    notify: bool = False  # send notices to the channels of the settings


class MonitorFeed(Protocol):
    """Looks at machines in the background, so that no reader ever waits for a provider or a machine."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups in the settings, in their order."""

    def next(self, *, seconds: float) -> MonitorLook | None:
        """The newest look that was not returned yet, waiting at most this long; None if there is no new one.

        Raises what the feed cannot go on with: AccessRefused for a key that never worked.
        """

    def refresh(self) -> None:
        """Look now, at the provider and at all machines."""

    def set_paused(self, paused: bool) -> None:
        """While paused nothing is asked and no new look comes."""

    def clear_logs(self) -> None:
        """Forget the log lines shown so far."""

    def close(self) -> None:
        """End within seconds, whatever does not answer. May be repeated."""


class Monitoring(Protocol):
    def feed(self, watched: Watched, *, every_seconds: float) -> MonitorFeed:
        """Start to look at machines now and at every interval. Machines that do not answer are shown as last known.

        Raises UserError for an invalid machine id, group or listing, ConfigInvalid if no account is set up.
        """
