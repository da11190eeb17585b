"""Signals that ask the training to save (USR1), or to save and stop (TERM, INT). Standard library only."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def leave_to_training() -> None:
    """In a process that loads data: ignore what asks the training to stop or save, which ends such processes itself.

    The signals go to the whole group, and a training that loses a worker fails before it has saved.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


class Requests:
    """Keeps what signals ask until the running step ends. Before the first step nothing can be saved: it exits."""

    def __init__(self) -> None:
        self.save = False
        self.stop: int | None = None
        self._running = False
        signal.signal(signal.SIGUSR1, self._note_save)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_stop)

    def begin(self) -> None:
        """The first step starts: from now on there is something to save."""
        self._running = True

    @property
    def exit_status(self) -> int:
        """As a shell reports a process that ended by this signal."""
        return 0 if self.stop is None else 128 + self.stop

    def _note_save(self, _number: int, _frame: FrameType | None) -> None:
        self.save = True

    def _note_stop(self, number: int, _frame: FrameType | None) -> None:
        self.stop = number
        if not self._running:
            sys.exit(self.exit_status)
