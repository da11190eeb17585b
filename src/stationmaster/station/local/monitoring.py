"""Monitors rented machines: builds the listing, the logs and the history that the settings give."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from stationmaster.control.monitoring.feed import BackgroundFeed
from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.groups import Groups
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.monitor import LIST_SECONDS, Monitor, Warnings
from stationmaster.control.monitoring.sources import Listing, Logs
from stationmaster.control.monitoring.timing import REAL_TIME, Timing
from stationmaster.errors import UserError
from stationmaster.recipes.log_patterns import user_patterns
from stationmaster.station.local.installation import Installation
from stationmaster.station.monitoring import Watched

if TYPE_CHECKING:
    from stationmaster.control.monitoring.instance_history import InstanceHistory

_MOCK_GROUPS = {"trainings": ("mock-training",), "trouble": ("mock-idle", "mock-exited", "mock-stalled")}


class LocalMonitoring:
    def __init__(self, installation: Installation, *, timing: Timing = REAL_TIME) -> None:
        """`timing` is for programs in which time passes faster."""
        self._installation = installation
        self._timing = timing

    def feed(self, watched: Watched, *, every_seconds: float) -> BackgroundFeed:
        _require_ids(watched.ids)
        groups = Groups(_MOCK_GROUPS if watched.made_up else self._installation.settings.monitor.groups)
        if watched.group is not None:
            groups.require(watched.group)
        listing, logs, least = self._sources(watched)
        patterns = user_patterns(self._installation.settings.logs.patterns)
        wanted = watched.ids or getattr(listing, "ids", ())

        @asynccontextmanager
        async def open_monitor(publish: Callable[[MonitorLook], None]) -> AsyncIterator[Monitor]:
            warnings = Warnings()
            history = self._history(watched, warn=warnings.add)

            def take(look: MonitorLook) -> None:
                if history is not None and look.complete:
                    history.add(look.snapshot)
                publish(look)

            try:
                yield Monitor(
                    listing=listing,
                    logs=logs,
                    fleet=Fleet(
                        warn=warnings.add,
                        wanted=wanted,
                        group=watched.group,
                        groups=groups,
                        only_running=watched.only_running,
                        patterns=patterns,
                        made_up=watched.made_up,
                    ),
                    warnings=warnings,
                    publish=take,
                    every_seconds=every_seconds,
                    list_seconds=least,
                    timing=self._timing,
                )
            finally:
                if history is not None:
                    history.flush()
                await logs.close()
                await listing.close()

        return BackgroundFeed(open_monitor, groups=groups.names)

    def _history(self, watched: Watched, *, warn: Callable[[str], None]) -> InstanceHistory | None:
        """Stores what is shown; None for invented machines."""
        if watched.made_up:
            return None
        from stationmaster.control.monitoring.instance_history import InstanceHistory

        series, limit = self._installation.store.series, self._installation.settings.metrics.cap_bytes
        return InstanceHistory(partial(series.add_of_machine, cap_bytes=limit), warn=warn)

    def _sources(self, watched: Watched) -> tuple[Listing, Logs, float]:
        """The listing, the logs, and the least seconds between two listings."""
        if watched.made_up:
            from stationmaster.control.monitoring.mock import DEFAULT_SEED, MockMachines

            seed = DEFAULT_SEED if watched.seed is None else watched.seed
            machines = MockMachines(ids=watched.ids, clock=self._timing.clock, seed=seed)
            return machines, machines, 0.0
        from stationmaster.control.monitoring.ssh_logs import SshLogs
        from stationmaster.control.monitoring.vast_listing import open_vast_listing
        from stationmaster.control.wiring.providers import ssh_key_path
        from stationmaster.remote.connect import connect

        installation = self._installation
        key_path = ssh_key_path(installation.settings)
        listing = open_vast_listing(
            installation.settings, installation.store, key_path=str(key_path), pause=installation.pause
        )
        reach = partial(connect, ssh=installation.settings.ssh)
        logs = SshLogs(key_path=key_path, connect=reach, log_path=watched.log_path)
        return listing, logs, LIST_SECONDS


def _require_ids(ids: tuple[str, ...]) -> None:
    wrong = next((word for word in ids if not word.isdigit()), None)
    if wrong is not None:
        raise UserError(f"{wrong!r} is not the id of a machine", hint="for example: --instances 30007012,30007267")
