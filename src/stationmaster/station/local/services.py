"""Processes that run in a terminal until they are stopped: worker, sweeper, HTTP service.

None of this is part of the Station protocol, as with `processes`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from stationmaster.control.wiring.required_settings import require_set_up
from stationmaster.control.worker.background import running_worker
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.errors import ConfigInvalid

_LOOK_SECONDS = 2.0


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

    @property
    def provider(self) -> str:
        """The default one."""
        return self._source.settings.provider

    @property
    def port(self) -> int:
        """Of the HTTP service; 0 for any."""
        return self._source.settings.serve.port

    def settings_source(self) -> SettingsSource:
        """Another source of the same settings: each part of a process hears of a change once."""
        return SettingsSource(self._source.environ, overrides=self._given)

    @property
    def log_level(self) -> str:
        return self._source.settings.log_level

    def missing_setting(self) -> ConfigInvalid | None:
        """What the default provider lacks, such as a key; jobs of other providers run without it."""
        settings = self._source.settings
        try:
            require_set_up(settings.provider, settings)
        except ConfigInvalid as problem:
            return problem
        return None

    def work(self, *, background: bool = False) -> bool:
        """Run jobs until stopped; False at once if this home already has a worker."""
        from stationmaster.control.worker.service import serve_worker  # loads all that jobs need; `serve` does without

        return serve_worker(self._source, background=background)

    def wait_until_free(self, is_over: threading.Event) -> bool:
        """Wait until this home has no worker; False if the event is set before."""
        while running_worker(self.home) is not None:
            if is_over.wait(_LOOK_SECONDS):
                return False
        return True

    def sweep(self, *, once: bool = False) -> None:
        """Destroy machines that no job needs, at an interval or once; needs only the store and the providers."""
        from stationmaster.control.worker.service import serve_sweeper

        serve_sweeper(self._source, once=once)
