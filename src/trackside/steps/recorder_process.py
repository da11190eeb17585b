"""Keeps a recorder beside a running training, one at a time, and never waits for it."""

from __future__ import annotations

import os
import signal
import time

from trackside.machine import locks
from trackside.root import Root
from trackside.steps.launch import own_command, spawn_in_session
from trackside.steps.monitored_step import is_monitored
from trackside.steps.plan import Plan
from trackside.steps.tries import Try

_RESTART_SECONDS = 10.0
_END_SECONDS = 5.0  # for the last sample and fold
_POLL_SECONDS = 0.05


def is_recording(root: Root) -> bool:
    """Return whether a recorder is alive."""
    return locks.is_locked(root.recorder_lock)


class RecorderProcess:
    """The recorder of this supervisor. One that an earlier supervisor started is left alone: it ends by its own."""

    def __init__(self, root: Root, plan: Plan) -> None:
        self._root = root
        self._plan = plan
        self._pid = 0
        self._recorded: tuple[int, int] | None = None
        self._started_at = 0.0
        self._ended_at: float | None = None

    def keep(self, running: Try | None, *, moment: float) -> bool:
        """Start a recorder where one is missing, end one that is no longer needed; True beside a monitored try."""
        self._reap()
        if running is None or not is_monitored(self._plan, self._plan.steps[running.step]):
            self._end(moment)
            return False
        self._ended_at = None
        recorded = (running.step, running.number)
        is_due = recorded != self._recorded or moment - self._started_at >= _RESTART_SECONDS
        if not self._pid and is_due and running.process is not None:
            self._start(recorded, moment)
        return True

    def finish(self) -> None:
        """Wait a few seconds for the recorder's end; then kill it."""
        deadline = time.monotonic() + _END_SECONDS
        while self._pid and time.monotonic() < deadline:
            self._end(time.monotonic())
            time.sleep(_POLL_SECONDS)
            self._reap()
        self._kill()

    def _start(self, recorded: tuple[int, int], moment: float) -> None:
        lock = os.open(self._root.recorder_lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if locks.try_lock(lock):
                step, number = recorded
                command = own_command(self._root, "record", str(step), str(number), str(lock))
                self._pid = spawn_in_session(command, env=os.environ, keep=lock)
                self._recorded, self._started_at = recorded, moment
        finally:
            os.close(lock)

    def _end(self, moment: float) -> None:
        if not self._pid:
            return
        if self._ended_at is None:
            self._ended_at = moment
            os.kill(self._pid, signal.SIGTERM)  # it looks at once and finds that the try has ended
        elif moment - self._ended_at > _END_SECONDS:
            self._kill()

    def _kill(self) -> None:
        if self._pid:
            os.killpg(self._pid, signal.SIGKILL)  # with the programs that it started
            self._pid = 0

    def _reap(self) -> None:
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
