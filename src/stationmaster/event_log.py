"""Loggers that import structlog on the first event: importing it takes longer than most commands run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

_configure_later: Callable[[], None] | None = None
_shows_debug = False


class EventLog:
    """A structlog logger: `log.info("machine.launched", job=…)`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, event: str, **fields: Any) -> None:
        """Log, if `configure_logging` was asked for debug lines: a busy worker would spend its time on them."""
        if _shows_debug:
            _structlog().get_logger(self._name).debug(event, **fields)

    @contextmanager
    def timed(self, event: str, **fields: Any) -> Iterator[None]:
        """Log at the end, as `debug` does, how long it took and the class of the error that it ended with."""
        if not _shows_debug:
            yield
            return
        began, failed = time.perf_counter(), None
        try:
            yield
        except BaseException as error:
            failed = type(error).__name__
            raise
        finally:
            self.debug(event, **fields, seconds=round(time.perf_counter() - began, 3), error=failed)

    def __getattr__(self, method: str) -> Any:
        return getattr(_structlog().get_logger(self._name), method)


def get_logger(name: str) -> Any:
    """A logger for a module; you can create it before `configure_logging` is called."""
    return EventLog(name)


def configure_logging(configure: Callable[[], None], *, debug: bool = False) -> None:
    """Call `configure` to set up structlog: now if it is imported already, else before the first event.

    Without `debug`, debug lines are not even made.
    """
    global _configure_later, _shows_debug
    _shows_debug = debug
    if "structlog" in sys.modules:
        configure()
    else:
        _configure_later = configure


def _structlog() -> Any:
    global _configure_later
    import structlog  # late: see the module's docstring

    if _configure_later is not None:
        _configure_later()
        _configure_later = None
    return structlog
