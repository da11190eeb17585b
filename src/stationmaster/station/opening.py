"""Opens the station that a command asks: the one of this computer, or the one behind a server's address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stationmaster.config import load_settings
from stationmaster.settings import Settings
from stationmaster.settings.addresses import is_loopback
from stationmaster.station.local.station import LocalStation
from stationmaster.station.local.token_file import read_token_file

if TYPE_CHECKING:
    from stationmaster.providers.base import Pause
    from stationmaster.station.http.station import HttpStation


def open_station_or_server(
    environ: Mapping[str, str],
    *,
    home: Path | None = None,
    log_level: str | None = None,
    server: str | None = None,
    pause: Pause = asyncio.sleep,
) -> LocalStation | HttpStation:
    """The station at `server`, else at the setting `server`, else the one of this computer. Raises ConfigInvalid.

    Connects to a server with the first call that needs it.
    """
    settings = _settings(environ, home=home, log_level=log_level, server=server)
    if settings.server is None:
        return LocalStation(settings, environ, pause=pause)
    from stationmaster.station.http.station import HttpStation  # httpx, which takes long to import

    return HttpStation(settings.server, _token(settings, settings.server))


def is_server_set(
    environ: Mapping[str, str], *, home: Path | None = None, log_level: str | None = None, server: str | None = None
) -> bool:
    """Whether commands ask a server. Raises ConfigInvalid."""
    return _settings(environ, home=home, log_level=log_level, server=server).server is not None


def _settings(environ: Mapping[str, str], *, home: Path | None, log_level: str | None, server: str | None) -> Settings:
    return load_settings(environ, overrides={"home": home, "log_level": log_level, "server": server})


def _token(settings: Settings, server: str) -> str | None:
    """The token of the settings; for a server on this computer else the one that `serve` has written into the home."""
    if settings.token is not None:
        return settings.token.get_secret_value()
    found = read_token_file(settings.home) if is_loopback(server) else None
    return found if found is not None and found.isascii() and found.isprintable() else None
