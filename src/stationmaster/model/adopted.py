"""A training that somebody started by hand and that a job watches: which process, log and folder on which machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ADOPTED_RECIPE = "adopted@1"
"""The recipe of every adopted training: one step that is watched and never started."""
ADOPTED_PREFIX = "adopted:"
"""Begins the name of the provider of a machine that is somebody's own: nothing there is rented or destroyed."""
UNLIMITED_SECONDS = 10 * 365 * 86_400.0
"""The limit of a job that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedTraining:
    """What was found when it was adopted; never changes. Paths are absolute paths on the machine."""

    target: str  # the machine as the user named it
    log: str  # a pattern; the newest file of it is the log
    output: str | None = None
    process: Mapping[str, Any] | None = None  # pid, start time and boot; None: the end cannot be seen
    command: str = ""
    started_at: float | None = None  # of the process
    instance: str | None = None  # its id at the provider; None: a host of somebody's own
    rented_at: float | None = None
    release: bool = False  # whether the machine is destroyed when the training is over
    label_before: str = ""  # that the machine gets back if it is not destroyed
    stop_signal: str = "TERM"
    unknown: tuple[str, ...] = ()  # what cannot be known of it, as sentences

    @property
    def pid(self) -> int | None:
        return None if self.process is None else int(self.process["pid"])

    def is_same_process(self, other: AdoptedTraining) -> bool:
        """Whether both are the same process: pids are used again, start times on one boot are not."""
        return self.process is not None and other.process is not None and _identity(self) == _identity(other)


def _identity(training: AdoptedTraining) -> tuple[Any, ...]:
    assert training.process is not None
    return tuple(training.process.get(key) for key in ("boot_id", "pid", "start_time"))
