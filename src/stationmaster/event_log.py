"""Loggers that import structlog on the first event: importing it takes longer than most commands run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_configure_later: Callable[[], None] | None = None


class EventLog:
    """A structlog logger: `log.info("machine.launched", job=…)`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        return getattr(_structlog().get_logger(self._name), method)


def get_logger(name: str) -> Any:
    """A logger for a module; you can create it before `configure_logging` is called."""
    return EventLog(name)


def configure_logging(configure: Callable[[], None]) -> None:
    """Call `configure` to set up structlog: now if it is imported already, else before the first event."""
    global _configure_later
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
