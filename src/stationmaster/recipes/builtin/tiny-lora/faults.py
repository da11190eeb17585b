"""Misbehaviour on request, so that stall detection, retries and recovery can be tried for real."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the check of the packages reads this file where NumPy may be missing
    import numpy as np

KINDS = ("none", "stall", "slow", "hang_saving", "oom", "nan", "crash", "ignore_term")

_SLOWER_EACH_STEP = 1.15
_LEAST_SLOW_STEP = 0.02


class Stop(Protocol):
    """Whether somebody has asked for the end, and with which exit status to go."""

    def asked(self) -> bool: ...

    def exit_status(self) -> int: ...


class OutOfMemoryError(MemoryError):
    """Shown in a traceback under the name that a GPU trainer's log has."""


OutOfMemoryError.__module__ = "torch"


class Fault:
    """One kind of trouble that begins at a step, in the first `tries` tries or (0) in every one."""

    def __init__(self, kind: str, at_step: int, tries: int, record: Path) -> None:
        self.kind, self.at_step, self.tries = kind, at_step, tries
        self._record = record
        self._active: bool | None = None

    def before_step(self, step: int, stop: Stop) -> None:
        """Whatever goes wrong before `step` is trained."""
        if step == self.at_step and self._shows("ignore_term"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if step < self.at_step:
            return
        if self._shows("stall"):
            _wait_for_ever(stop)
        if self._shows("oom"):
            raise OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.65 GiB of which "
                "98.44 MiB is free. Including non-PyTorch memory, this process has 23.54 GiB memory in use."
            )
        if self._shows("crash"):
            raise RuntimeError(f"the fault `crash` was asked for at step {self.at_step}")

    def spoil(self, patches: np.ndarray, step: int) -> np.ndarray:
        """The step's pictures; with the fault `nan` one value of them is endless, and the loss computed from it nan."""
        if step < self.at_step or not self._shows("nan"):
            return patches
        spoilt = patches.copy()
        spoilt[0, 0] = float("inf")
        return spoilt

    def pace(self, seconds_per_step: float, step: int) -> float:
        """The least time of this step."""
        if step < self.at_step or not self._shows("slow"):
            return seconds_per_step
        return max(seconds_per_step, _LEAST_SLOW_STEP) * _SLOWER_EACH_STEP ** (step - self.at_step + 1)

    def while_saving(self, step: int, stop: Stop) -> None:
        """Whatever goes wrong when a checkpoint is half written."""
        if step >= self.at_step and self._shows("hang_saving"):
            _wait_for_ever(stop)
            raise SystemExit(stop.exit_status())

    def _shows(self, kind: str) -> bool:
        if self.kind != kind:
            return False
        if self._active is None:
            self._active = self._counted()
        return self._active

    def _counted(self) -> bool:
        """Whether this try is one of those; it is counted in a file, because each try is a new process."""
        shown = int(self._record.read_text()) if self._record.is_file() else 0
        self._record.write_text(str(shown + 1))
        return self.tries == 0 or shown < self.tries


def _wait_for_ever(stop: Stop) -> None:
    while not stop.asked():
        time.sleep(0.05)
