"""Runs the app, and leaves the terminal in order whatever happens inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from textual import constants

from stationmaster.tui.app import FleetApp

_TERMINAL = Path("/dev/tty")
_USUAL_ESCAPE_SECONDS = 0.1  # that Textual waits for the rest of a sequence, unless ESCDELAY says otherwise
_ESCAPE_SECONDS = 0.03


def run_app(app: FleetApp) -> int:
    """The exit code. Raises what ended the app unexpectedly, after the terminal is restored."""
    if constants.ESCAPE_DELAY == _USUAL_ESCAPE_SECONDS:
        # Or Escape alone would take longer than any key may until its effect is seen.
        setattr(constants, "ESCAPE_DELAY", _ESCAPE_SECONDS)  # noqa: B010  # declared final
    with _drawing_on_the_terminal():
        app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0


@contextmanager
def _drawing_on_the_terminal() -> Iterator[None]:
    """Textual draws on standard error. Where that is a file for the log, it draws on the terminal itself instead."""
    before = sys.__stderr__
    if before is not None and before.isatty():
        yield
        return
    with _TERMINAL.open("w") as terminal:
        sys.__stderr__ = terminal  # type: ignore[misc]
        try:
            yield
        finally:
            sys.__stderr__ = before  # type: ignore[misc]
