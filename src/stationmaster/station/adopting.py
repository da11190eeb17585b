"""Adopting: a job for a training that somebody started by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StopSignal = Literal["TERM", "INT", "HUP", "USR1", "USR2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRequest:
    """A request to watch a training that runs already, not checked yet. Paths are on its machine."""

    target: str  # the number of an instance, [USER@]HOST[:PORT], or a name in ssh.hosts
    log: str  # a pattern; the newest file of it is the log
    output: str
    pid_file: str | None = None
    release: bool = False  # destroy the rented machine when the training is over
    name: str | None = None
    provider: str | None = None  # of an instance; None: the default one
    account: str | None = None
    id: str | None = None
    owner: str | None = None
    max_hours: float | None = None
    stop_signal: StopSignal = "TERM"
    stop_when_stalled: bool = False

    @property
    def is_instance(self) -> bool:
        return self.target.isascii() and self.target.isdigit()
