"""Monitors rented machines; one event loop for all updates, so that connections stay open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from functools import partial

from stationmaster.control.monitoring.instance_history import InstanceHistory
from stationmaster.control.monitoring.monitor import Monitor
from stationmaster.control.monitoring.monitor_mock import MockSource
from stationmaster.control.monitoring.monitor_vast import VastSource, open_vast_source
from stationmaster.errors import UserError
from stationmaster.recipes.log_patterns import user_patterns
from stationmaster.station.local.installation import Installation
from stationmaster.station.monitoring import MonitorLook, Watched


class LocalMonitoring:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def looks(self, watched: Watched, *, every_seconds: float) -> Generator[MonitorLook, None, None]:
        _require_ids(watched.ids)
        return self._looks(watched, every_seconds=every_seconds)

    def _looks(self, watched: Watched, *, every_seconds: float) -> Generator[MonitorLook, None, None]:
        warnings: list[str] = []
        patterns = user_patterns(self._installation.settings.logs.patterns)
        source = self._source(watched)
        monitor = Monitor(
            source, wanted=watched.ids, only_running=watched.only_running, warn=warnings.append, patterns=patterns
        )
        history = self._history(watched, warn=warnings.append)
        with asyncio.Runner() as runner:
            try:
                while True:
                    began = time.monotonic()
                    snapshot = runner.run(monitor.cycle(now=time.time()))
                    if history is not None:
                        history.add(snapshot)
                    yield MonitorLook(snapshot=snapshot, warnings=tuple(warnings))
                    warnings.clear()
                    runner.run(asyncio.sleep(max(0.0, every_seconds - (time.monotonic() - began))))
            finally:
                if history is not None:
                    history.flush()
                runner.run(source.close())

    def _history(self, watched: Watched, *, warn: Callable[[str], None]) -> InstanceHistory | None:
        """Stores what is shown; None for invented machines."""
        if watched.made_up:
            return None
        series, limit = self._installation.store.series, self._installation.settings.metrics.cap_bytes
        return InstanceHistory(partial(series.add_of_machine, cap_bytes=limit), warn=warn)

    def _source(self, watched: Watched) -> MockSource | VastSource:
        if watched.made_up:
            return MockSource(ids=watched.ids, clock=time.time)
        installation = self._installation
        return open_vast_source(
            installation.settings, installation.store, log_path=watched.log_path, pause=installation.pause
        )


def _require_ids(ids: tuple[str, ...]) -> None:
    wrong = next((word for word in ids if not word.isdigit()), None)
    if wrong is not None:
        raise UserError(f"{wrong!r} is not the id of a machine", hint="for example: --instances 30007012,30007267")
