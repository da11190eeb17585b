"""Where log lines go: JSON lines on standard error, or a console form on a terminal."""

from __future__ import annotations

import logging
import sys
from functools import partial

from stationmaster.event_log import configure_logging


def service_logging(level: str) -> None:
    """For workers and other services."""
    number = logging.getLevelNamesMapping()[level]
    configure_logging(partial(_log_everything, number), debug=number <= logging.DEBUG)
    # asyncssh logs every connection at INFO; its errors reach us as exceptions anyway.
    logging.basicConfig(
        level=max(number, logging.WARNING), format="%(asctime)s - %(name)s - %(levelname)s - %(message)s"
    )


def command_logging(level: str | None) -> None:
    """For commands that people run: only errors, unless they ask for a level."""
    if level is None:
        quiet_logging()
    else:
        service_logging(level)


def quiet_logging() -> None:
    """Only errors."""
    configure_logging(_log_errors)
    logging.basicConfig(level=logging.ERROR, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")


def _log_everything(level: int) -> None:
    import structlog  # only with the first event: see `event_log`

    terminal = sys.stderr.isatty()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if terminal else [structlog.processors.format_exc_info]),
            structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _log_errors() -> None:
    import structlog  # only with the first event: see `event_log`

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
