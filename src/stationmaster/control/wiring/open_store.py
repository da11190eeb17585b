"""Opens the store in the settings."""

from __future__ import annotations

import contextlib

from stationmaster.errors import ConfigInvalid
from stationmaster.settings import Settings
from stationmaster.settings.private_home import make_private_home, tighten_home
from stationmaster.store.engine import Database
from stationmaster.store.store import Store


def open_store(settings: Settings, *, writable: bool = True) -> Store:
    """Open the store with its schema up to date. Raises ConfigInvalid when the home cannot be written.

    With `writable` False nothing is asked of the home: the sweeper works where the store can only be read. A home that
    is not there yet is made all the same, where that can be done: the first command on it may be a look.
    """
    if writable:
        _require_writable_home(settings)
    else:
        with contextlib.suppress(OSError):
            make_private_home(settings.home)
    store = Store(
        Database(settings.store_url),
        log_cap_bytes=settings.log_cap_bytes,
        series_cap_bytes=settings.metrics.cap_bytes,
    )
    tighten_home(settings.home)  # SQLite has just made files by the umask, which is the caller's in a program of theirs
    return store


def _require_writable_home(settings: Settings) -> None:
    try:
        make_private_home(settings.home)
        probe = settings.home / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another command may be trying the same
    except OSError as problem:
        raise ConfigInvalid(
            f"cannot write to {settings.home}: {problem.strerror}", hint="set STATIONMASTER_HOME or give --home"
        ) from None
