"""Opening the station of this computer, as its environment, its files and a command's own options set it up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stationmaster.config import load_settings
from stationmaster.station.local.station import LocalStation

if TYPE_CHECKING:
    from stationmaster.providers.base import Pause


def open_station(
    environ: Mapping[str, str],
    *,
    home: Path | None = None,
    log_level: str | None = None,
    pause: Pause = asyncio.sleep,
) -> LocalStation:
    """Raises ConfigInvalid. The store is opened by the first question that needs it."""
    settings = load_settings(environ, overrides={"home": home, "log_level": log_level})
    return LocalStation(settings, environ, pause=pause)
