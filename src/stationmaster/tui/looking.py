"""Threads that wait for a source, so that the app never does: each hands over what it found, or the problem."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from stationmaster.errors import StationmasterError
from stationmaster.tui.fleet import FleetView
from stationmaster.tui.sources.base import Detail, Source

_log = logging.getLogger("stationmaster.tui")
_WAIT_SECONDS = 0.5
_AGAIN_SECONDS = 2.0
_END_SECONDS = 1.0

Result = TypeVar("Result")
Publish = Callable[[FleetView | Detail | Exception], None]


async def in_thread(work: Callable[[], Result]) -> Result:
    """The result of what may take long. Its thread never keeps the app from ending, as those of asyncio's pool do."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def settle(set_answer: Callable[[], None]) -> None:
        if not answer.done():
            set_answer()

    def run() -> None:
        try:
            result = work()
        except Exception as problem:  # noqa: BLE001 (raised where it is awaited)
            outcome = partial(settle, partial(answer.set_exception, problem))
        else:
            outcome = partial(settle, partial(answer.set_result, result))
        if not loop.is_closed():
            loop.call_soon_threadsafe(outcome)

    threading.Thread(target=run, name="action", daemon=True).start()
    return await answer


class FleetLooking(threading.Thread):
    """Looks at everything, again and again, until it is closed."""

    def __init__(self, source: Source, publish: Publish) -> None:
        super().__init__(name="fleet", daemon=True)
        self._source = source
        self._publish = publish
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.is_set():
            try:
                view = self._source.next(seconds=_WAIT_SECONDS)
            except Exception as problem:  # noqa: BLE001 (top of a loop: the screen keeps the last values and says why)
                self._report(problem)
                self._is_over.wait(_AGAIN_SECONDS)
                continue
            if view is not None and not self._is_over.is_set():
                self._publish(view)

    def close(self) -> None:
        """A look that does not answer is left to itself."""
        self._is_over.set()
        self._source.close()
        self.join(_END_SECONDS)

    def _report(self, problem: Exception) -> None:
        if not isinstance(problem, StationmasterError):
            _log.error("a look failed", exc_info=problem)
        if not self._is_over.is_set():
            self._publish(problem)


class DetailLooking(threading.Thread):
    """Looks at one training every second until it is closed; `again` looks at once."""

    def __init__(self, source: Source, id: str, publish: Publish, *, width: int) -> None:
        super().__init__(name="detail", daemon=True)
        self.width = width
        self._source = source
        self._id = id
        self._publish = publish
        self._wake = threading.Event()
        self._is_over = False
        self.is_paused = False

    def run(self) -> None:
        while not self._is_over:
            if not self.is_paused:
                self._look()
            self._wake.wait(self._source.about.interval)
            self._wake.clear()

    def again(self) -> None:
        self._wake.set()

    def close(self) -> None:
        """Does not wait: what it finds afterwards is dropped."""
        self._is_over = True
        self._wake.set()

    def _look(self) -> None:
        found: Detail | Exception
        try:
            found = self._source.detail(self._id, width=self.width)
        except Exception as problem:  # noqa: BLE001 (as above)
            if not isinstance(problem, StationmasterError):
                _log.error("a look at %s failed", self._id, exc_info=problem)
            found = problem
        if not self._is_over:
            self._publish(found)
