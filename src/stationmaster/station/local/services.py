"""Processes that run in a terminal until they are stopped: worker, sweeper, HTTP service.

None of this is part of the Station protocol, as with `processes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stationmaster.config import load_settings
from stationmaster.control.worker.service import serve_sweeper, serve_worker
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.settings import Settings


class LocalService:
    """One process of this home. It reloads its settings when their files change. Raises ConfigInvalid."""

    def __init__(self, environ: Mapping[str, str], *, home: Path | None = None, log_level: str | None = None) -> None:
        self._source = SettingsSource(environ, overrides={"home": home, "log_level": log_level})

    @property
    def home(self) -> Path:
        return self._source.settings.home

    @property
    def log_level(self) -> str:
        return self._source.settings.log_level

    def work(self, *, background: bool = False) -> bool:
        """Run jobs until stopped; False at once if this home already has a worker."""
        return serve_worker(self._source, background=background)

    def sweep(self, *, once: bool = False) -> None:
        """Destroy machines that no job needs, at an interval or once; needs only the store and the providers."""
        serve_sweeper(self._source, once=once)


def settings_to_serve(
    environ: Mapping[str, str],
    *,
    home: Path | None = None,
    log_level: str | None = None,
    host: str | None = None,
    port: int | None = None,
) -> Settings:
    """The settings that the HTTP service runs with. Raises ConfigInvalid."""
    given = {"home": home, "log_level": log_level, "serve.host": host, "serve.port": port}
    return load_settings(environ, overrides=given)
