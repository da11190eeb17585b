"""What a service needs to run a worker as it would run in this terminal, environment included."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from stationmaster.config import is_setting
from stationmaster.files import write_atomically
from stationmaster.settings import Settings
from stationmaster.settings.private_home import make_private_home
from stationmaster.station.checks import WorkerService

_FILE = "worker.env"
_PASSED_ON = frozenset({"PATH", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"})
_NOT_IN_QUOTES = re.compile(r'["\\`$]')


def set_up_service(settings: Settings, environ: Mapping[str, str], *, folder: Path) -> WorkerService:
    """Write the variables that a worker reads to a file in the home that only you may read."""
    found = {name: value for name, value in environ.items() if value and _is_for_workers(name)}
    make_private_home(settings.home)
    file = settings.home / _FILE
    write_atomically(file, "".join(f"{name}={_quoted(value)}\n" for name, value in sorted(found.items())), mode=0o600)
    return WorkerService(
        python=sys.executable,
        home=str(settings.home),
        folder=str(folder),
        environment_file=str(file),
        variables=tuple(sorted(name for name in found if is_setting(name))),
    )


def _is_for_workers(name: str) -> bool:
    return (is_setting(name) and name != "STATIONMASTER_HOME") or name.upper() in _PASSED_ON


def _quoted(value: str) -> str:
    r"""A value as systemd reads it from a file of variables; a line break in quotes is part of the value.

    >>> print(_quoted('a "b" $c'))
    "a \"b\" \$c"
    """
    return f'"{_NOT_IN_QUOTES.sub(lambda found: chr(92) + found[0], value)}"'
