"""Runs a monitor in a thread of its own, and hands its looks to a reader that never waits for a machine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from stationmaster.control.monitoring.daemon_threads import DaemonThreads
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.monitor import Monitor

_CLOSE_SECONDS = 2.0
_MOST_LINES = 200

OpenMonitor = Callable[[Callable[[MonitorLook], None]], AbstractAsyncContextManager[Monitor]]
"""Builds the monitor inside its event loop; the argument takes its looks."""


class BackgroundFeed:
    """Looks that no reader has taken yet become one, with all their warnings and notices."""

    def __init__(self, open_monitor: OpenMonitor, *, groups: tuple[str, ...] = ()) -> None:
        self._open_monitor = open_monitor
        self._groups = groups
        self._news = threading.Condition()
        self._look: MonitorLook | None = None
        self._problem: BaseException | None = None
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._monitor: Monitor | None = None
        self._running: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        self._thread.start()

    @property
    def groups(self) -> tuple[str, ...]:
        return self._groups

    def next(self, *, seconds: float) -> MonitorLook | None:
        """The newest look that was not returned yet, waiting at most this long; None if there is no new one."""
        deadline = time.monotonic() + seconds
        with self._news:
            while self._look is None and self._problem is None and not self._is_closed:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._news.wait(left)
            look, self._look = self._look, None
            if look is None and self._problem is not None:
                raise self._problem
            return look

    def refresh(self) -> None:
        self._call(Monitor.refresh)

    def set_paused(self, paused: bool) -> None:
        self._call(lambda monitor: monitor.set_paused(paused))

    def clear_logs(self) -> None:
        self._call(Monitor.clear_logs)

    def close(self) -> None:
        with self._news:
            self._is_closed = True
            self._news.notify_all()
            loop, running = self._loop, self._running
        if loop is not None and running is not None:
            _call_in(loop, running.cancel)
        self._thread.join(_CLOSE_SECONDS)

    def _call(self, act: Callable[[Monitor], None]) -> None:
        with self._news:
            loop, monitor = self._loop, self._monitor
        if loop is not None and monitor is not None:
            _call_in(loop, lambda: act(monitor))

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except asyncio.CancelledError:
            pass  # closed
        except Exception as problem:  # noqa: BLE001  # whatever it is, the reader raises it
            with self._news:
                self._problem = problem
                self._news.notify_all()

    async def _watch(self) -> None:
        with self._news:
            if self._is_closed:
                return
            self._loop, self._running = asyncio.get_running_loop(), asyncio.current_task()
        self._loop.set_default_executor(DaemonThreads())
        async with self._open_monitor(self._take) as monitor:
            with self._news:
                self._monitor = monitor
            await monitor.run()

    def _take(self, look: MonitorLook) -> None:
        with self._news:
            if self._look is not None:
                look = replace(
                    look,
                    warnings=(*self._look.warnings, *look.warnings)[-_MOST_LINES:],
                    notices=(*self._look.notices, *look.notices)[-_MOST_LINES:],
                )
            self._look = look
            self._news.notify_all()


def _call_in(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(act)
    except RuntimeError:
        pass  # the loop has ended meanwhile
