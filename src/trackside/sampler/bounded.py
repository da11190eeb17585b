"""Calls a function that may hang, without hanging with it."""

from __future__ import annotations

import threading
from typing import Callable, Generic, TypeVar

T = TypeVar("T")


class StillRunning(Exception):
    """The call has not returned in time."""


class Bounded(Generic[T]):
    """Runs a function in a thread of its own. One that hangs is left alone, and not called again until it returns."""

    def __init__(self, call: Callable[[], T], *, limit_seconds: float) -> None:
        self._call = call
        self._limit_seconds = limit_seconds
        self._thread: threading.Thread | None = None

    def is_running(self) -> bool:
        """Return whether the last call still hangs."""
        return self._thread is not None and self._thread.is_alive()

    def __call__(self) -> T:
        """Return what the function returns, or raise what it raises. Raises StillRunning."""
        if self.is_running():
            raise StillRunning
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(self._call())
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
                errors.append(error)

        self._thread = threading.Thread(target=run, name="trackside-gpu", daemon=True)
        self._thread.start()
        self._thread.join(self._limit_seconds)
        if errors:
            raise errors[0]
        if not results:
            raise StillRunning
        return results[0]
