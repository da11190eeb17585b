"""Where log lines go: JSON lines on standard error, or a console form on a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from functools import partial
from typing import Any

from stationmaster.cli.terminal_output import unguarded
from stationmaster.event_log import configure_logging
from stationmaster.printable import one_line, printable


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

    dev = structlog.dev
    as_lines = [_printable_fields, dev.ConsoleRenderer(exception_formatter=dev.plain_traceback)]
    as_json = [structlog.processors.JSONRenderer(ensure_ascii=False)]
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *(as_lines if sys.stderr.isatty() else as_json),
        ],
        logger_factory=structlog.PrintLoggerFactory(unguarded(sys.stderr)),
    )


def _printable_fields(_logger: object, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The fields as text that may have any colour of ours, but controls no terminal."""
    return {name: printable(str(value)) if name == "exception" else _shown(value) for name, value in fields.items()}


def _shown(value: object) -> object:
    return value if isinstance(value, int | float | None) else one_line(str(value))


def _log_errors() -> None:
    import structlog  # only with the first event: see `event_log`

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
