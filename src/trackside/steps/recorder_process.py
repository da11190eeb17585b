"""Keeps a recorder beside a running training, one at a time, and never waits for it."""

from __future__ import annotations

import os
import signal
import time

from trackside.machine import clock, locks
from trackside.root import Root
from trackside.steps.launch import run_in_session
from trackside.steps.monitored_step import is_monitored
from trackside.steps.plan import Plan
from trackside.steps.recording import LOOK_NOW, record
from trackside.steps.supervisor_lock import sign_lock
from trackside.steps.tries import Try

_RESTART_SECONDS = 10.0
_END_SECONDS = 5.0  # for the last sample and fold
_POLL_SECONDS = 0.05


class RecorderProcess:
    """The recorder of this supervisor. One that an earlier supervisor started is left alone: it ends with its try."""

    def __init__(self, root: Root, plan: Plan) -> None:
        self._root = root
        self._plan = plan
        self._pid = 0
        self._killed: list[int] = []
        self._wanted: tuple[int, int] | None = None  # the last try to record
        self._recorded: tuple[int, int] | None = None  # the last one that a recorder was started for
        self._started_at = 0.0
        self._ended_at: float | None = None

    def begin(self, step: int, number: int) -> None:
        """Have a try recorded that is about to start; even one that ends before the next turn has its end recorded."""
        if is_monitored(self._plan, self._plan.steps[step]):
            self._wanted = (step, number)

    def keep(self, running: Try | None, *, moment: float) -> bool:
        """Start a recorder where one is missing, end one that is no longer needed; True beside a monitored try."""
        self._reap()
        is_on = running is not None and is_monitored(self._plan, self._plan.steps[running.step])
        if running is not None and is_on:
            self._wanted = (running.step, running.number)
        is_first = self._wanted != self._recorded
        if self._pid and (is_first or not is_on):
            self._end(moment)
        else:
            self._ended_at = None
        if self._wanted and not self._pid and (is_first or (is_on and moment - self._started_at >= _RESTART_SECONDS)):
            self._start(self._wanted, moment)
        return is_on

    def finish(self) -> None:
        """Wait a few seconds for the recorder's end; then kill it."""
        deadline = clock.seconds_since_boot() + _END_SECONDS
        while clock.seconds_since_boot() < deadline:
            self.keep(None, moment=clock.seconds_since_boot())
            if not self._pid and self._wanted == self._recorded:
                return
            time.sleep(_POLL_SECONDS)
        self._kill()

    def _start(self, recorded: tuple[int, int], moment: float) -> None:
        lock = os.open(self._root.recorder_lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if locks.try_lock(lock):
                step, number = recorded
                self._pid = run_in_session("recorder", lambda: _record(self._root, step, number, lock), keep=lock)
                self._recorded, self._started_at = recorded, moment
        finally:
            os.close(lock)

    def _end(self, moment: float) -> None:
        if self._ended_at is None:
            self._ended_at = moment
            os.kill(self._pid, LOOK_NOW)
        elif moment - self._ended_at > _END_SECONDS:
            self._kill()

    def _kill(self) -> None:
        if self._pid:
            os.killpg(self._pid, signal.SIGKILL)  # with the programs that it started
            self._killed.append(self._pid)  # not waited for: a driver that hangs may hold it for ever
            self._pid = 0

    def _reap(self) -> None:
        self._killed = [pid for pid in self._killed if not os.waitpid(pid, os.WNOHANG)[0]]
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0


def _record(root: Root, step: int, number: int, lock: int) -> None:
    sign_lock(lock)
    record(root, step, number)
