"""The systemd user unit that keeps a worker running."""

from __future__ import annotations

import re

from stationmaster.errors import UserError
from stationmaster.station.checks import WorkerService

_UNIT = """[Unit]
Description=Stationmaster worker
After=network-online.target

[Service]
WorkingDirectory={FOLDER}
EnvironmentFile={ENVIRONMENT}
ExecStart={COMMAND}
Restart=always
RestartSec=5
UMask=0077

[Install]
WantedBy=default.target
"""


def unit_of(service: WorkerService) -> str:
    """The unit's text. Raises UserError for a path that no unit can hold."""
    arguments = ["-P", "-m", "stationmaster", "--home", service.home, "worker"]
    for text in (service.python, *arguments, service.folder, service.environment_file):
        if not text.isprintable():
            raise UserError(f"{text!r} cannot be written into a systemd unit", hint="rename the folder")
    return _UNIT.format(
        FOLDER=_plain(service.folder),
        ENVIRONMENT=_plain(service.environment_file),
        COMMAND=" ".join(
            # Variables are filled in everywhere but in the program's path.
            [_quoted(_plain(service.python)), *(_quoted(_plain(text).replace("$", "$$")) for text in arguments)]
        ),
    )


def _plain(path: str) -> str:
    """A path that is the whole value: only `%` has a meaning there.

    >>> _plain("/home/ann/my 100%")
    '/home/ann/my 100%%'
    """
    return path.replace("%", "%%")


def _quoted(text: str) -> str:
    r"""A word of a command.

    >>> print(_quoted("worker"), _quoted('/home/ann/my "cats"'))
    worker "/home/ann/my \"cats\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return escaped if re.fullmatch(r"[\w./%$=-]+", text) else f'"{escaped}"'
