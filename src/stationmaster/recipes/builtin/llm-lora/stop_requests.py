"""What the training was asked for by signals: a checkpoint (USR1), or its end (TERM, INT). Standard library only."""

from __future__ import annotations

import signal
import sys
from types import FrameType


class Requests:
    """Notes signals for the end of the running step; before the first step there is nothing to save, so it ends."""

    def __init__(self) -> None:
        self.save = False
        self.end: int | None = None
        self._running = False
        signal.signal(signal.SIGUSR1, self._note_save)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_end)

    def begin(self) -> None:
        """From now on there is something to save."""
        self._running = True

    @property
    def exit_status(self) -> int:
        """As a shell reports a process that ended by this signal."""
        return 0 if self.end is None else 128 + self.end

    def _note_save(self, _number: int, _frame: FrameType | None) -> None:
        self.save = True

    def _note_end(self, number: int, _frame: FrameType | None) -> None:
        self.end = number
        if not self._running:
            sys.exit(self.exit_status)
