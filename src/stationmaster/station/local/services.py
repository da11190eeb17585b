"""Processes that run in a terminal until they are stopped: worker, sweeper, HTTP service.

None of this is part of the Station protocol, as with `processes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stationmaster.control.worker.service import serve_sweeper, serve_worker
from stationmaster.control.worker.settings_source import SettingsSource


class LocalService:
    """One process of this home. It reloads its settings when their files change. Raises ConfigInvalid."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        home: Path | None = None,
        log_level: str | None = None,
        host: str | None = None,
        port: int | None = None,
    ) -> None:
        given = {"home": home, "log_level": log_level, "serve.host": host, "serve.port": port}
        self._source = SettingsSource(environ, overrides=given)
        self._given = given

    @property
    def home(self) -> Path:
        return self._source.settings.home

    def settings_source(self) -> SettingsSource:
        """Another source of the same settings: each part of a process hears of a change once."""
        return SettingsSource(self._source.environ, overrides=self._given)

    @property
    def log_level(self) -> str:
        return self._source.settings.log_level

    def work(self, *, background: bool = False) -> bool:
        """Run jobs until stopped; False at once if this home already has a worker."""
        return serve_worker(self._source, background=background)

    def sweep(self, *, once: bool = False) -> None:
        """Destroy machines that no job needs, at an interval or once; needs only the store and the providers."""
        serve_sweeper(self._source, once=once)
