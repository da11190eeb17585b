"""Changed settings take effect without a restart: further requests see a station with the new ones.

Both stations share one store, so that a request or stream under way is not disturbed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI

from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.errors import StationmasterError
from stationmaster.event_log import get_logger
from stationmaster.settings import Settings
from stationmaster.station.local.station import LocalStation
from stationmaster.station.owned.allowances import Allowances

log = get_logger("stationmaster.serve")

_LOOK_SECONDS = 2.0
_WITHOUT_RESTART = frozenset({"user_providers", "user_datasets"})


@contextmanager
def follow_settings(source: SettingsSource, app: FastAPI, station: LocalStation) -> Iterator[None]:
    """Look for changed settings in a thread, as long as the context is open."""
    is_over = threading.Event()

    def look() -> None:
        current, problem = source.settings, ""
        while not is_over.wait(_LOOK_SECONDS):
            try:
                source.reread()
            except (StationmasterError, OSError) as found:
                if str(found) != problem:
                    log.error("settings.unusable", problem=f"{found}; the previous settings stay in force")
                problem = str(found)
                continue
            if source.settings is not current:
                _take_over(app, station, current, source.settings)
                current, problem = source.settings, ""

    thread = threading.Thread(target=look, name="settings", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _take_over(app: FastAPI, station: LocalStation, before: Settings, after: Settings) -> None:
    app.state.station = station.with_settings(after)
    app.state.allowances = Allowances.of(after)
    fixed = sorted(
        f"serve.{name}"
        for name in type(after.serve).model_fields
        if name not in _WITHOUT_RESTART and getattr(after.serve, name) != getattr(before.serve, name)
    )
    log.info("settings.changed")
    if fixed:
        log.warning("settings.need_restart", settings=fixed, why="these take effect when the service is started again")
