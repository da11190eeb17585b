"""Where `stationmaster monitor` logs: time, logger, level, message on standard error, or in a file under the app."""

from __future__ import annotations

import logging
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from stationmaster.printable import one_line
from stationmaster.station.monitoring import MonitorFeed, MonitorLook, NoticeKind

_log = logging.getLogger("stationmaster.monitor")
_FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
_FILE_BYTES = 1024 * 1024
_LEVELS = {NoticeKind.EXITED: logging.WARNING, NoticeKind.HEALTH: logging.WARNING}


def log_to_stderr(level: str | None) -> None:
    _log_to(logging.StreamHandler(sys.stderr), level)


def log_to_file(path: Path | None, level: str | None) -> None:
    """For an app that draws on the terminal where log lines would go; None logs nowhere.

    The file is written with the first line. Two old ones are kept.
    """
    if path is None:
        return _log_to(logging.NullHandler(), level)
    return _log_to(_LateFile(path, maxBytes=_FILE_BYTES, backupCount=2, delay=True), level)


class LoggedFeed:
    """A feed whose warnings and notices are logged when a reader gets them, one line each, whatever a machine sent."""

    def __init__(self, feed: MonitorFeed) -> None:
        self._feed = feed

    @property
    def groups(self) -> tuple[str, ...]:
        return self._feed.groups

    def next(self, *, seconds: float) -> MonitorLook | None:
        look = self._feed.next(seconds=seconds)
        if look is not None:
            for warning in look.warnings:
                _log.warning(one_line(warning))
            for notice in look.notices:
                _log.log(_LEVELS.get(notice.kind, logging.INFO), one_line(notice.sentence))
        return look

    def refresh(self) -> None:
        self._feed.refresh()

    def set_paused(self, paused: bool) -> None:
        self._feed.set_paused(paused)

    def clear_logs(self) -> None:
        self._feed.clear_logs()

    def close(self) -> None:
        self._feed.close()


class _LateFile(RotatingFileHandler):
    """Creates its folder with the first line."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return super()._open()


def _log_to(handler: logging.Handler, level: str | None) -> None:
    number = logging.getLevelNamesMapping().get((level or "WARNING").upper(), logging.WARNING)
    logging.basicConfig(level=number, format=_FORMAT, handlers=[handler], force=True)
    logging.getLogger("asyncssh").setLevel(logging.ERROR)
