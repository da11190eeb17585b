"""Monitors rented machines: builds the monitor, its history and its messages, and runs them in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from stationmaster.control.monitoring.feed import BackgroundFeed
from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.groups import Groups
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.monitor import Monitor, Warnings
from stationmaster.control.monitoring.timing import REAL_TIME, Timing
from stationmaster.errors import UserError
from stationmaster.recipes.log_patterns import user_patterns
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.monitoring_sources import Sources, open_sources
from stationmaster.station.monitoring import Watched

if TYPE_CHECKING:
    from stationmaster.control.monitoring.instance_history import InstanceHistory

_MOCK_GROUPS = {
    "trainings": ("mock-training",),
    "trouble": ("mock-idle", "mock-overused", "mock-diverging", "mock-exited", "mock-stalled", "mock-silent"),
}


class LocalMonitoring:
    def __init__(self, installation: Installation, *, timing: Timing = REAL_TIME) -> None:
        """`timing` is for programs in which time passes faster: see `accelerated`."""
        self._installation = installation
        self._timing = timing

    def feed(self, watched: Watched, *, every_seconds: float) -> BackgroundFeed:
        _require_sense(watched)
        groups = Groups(_MOCK_GROUPS if watched.made_up else self._installation.settings.monitor.groups)
        if watched.group is not None:
            groups.require(watched.group)
        sources = open_sources(self._installation, watched, every_seconds=every_seconds, timing=self._timing)
        open_monitor = partial(self._monitor, watched, groups, sources, every_seconds)
        return BackgroundFeed(open_monitor, groups=groups.names)

    @asynccontextmanager
    async def _monitor(
        self,
        watched: Watched,
        groups: Groups,
        sources: Sources,
        every_seconds: float,
        publish: Callable[[MonitorLook], None],
    ) -> AsyncIterator[Monitor]:
        """The monitor, inside its event loop."""
        warnings = Warnings()
        async with AsyncExitStack() as closing:
            for source in (sources.listing, sources.logs):
                if source is not None:
                    closing.push_async_callback(source.close)
            takers = [publish]
            if (history := self._history(watched, warn=warnings.add)) is not None:
                closing.callback(history.flush)
                takers.insert(0, lambda look: history.add(look.snapshot) if look.complete else None)
            if watched.notify:
                from stationmaster.station.local.notice_messages import NoticeMessages

                messages = await closing.enter_async_context(NoticeMessages.open(self._installation, warn=warnings.add))
                takers.append(lambda look: messages.put(look.notices))

            def take(look: MonitorLook) -> None:
                for taker in takers:
                    taker(look)

            yield Monitor(
                listing=sources.listing,
                logs=sources.logs,
                fleet=Fleet(
                    warn=warnings.add,
                    wanted=sources.ids,
                    group=watched.group,
                    groups=groups,
                    only_running=watched.only_running,
                    patterns=user_patterns(self._installation.settings.logs.patterns),
                    made_up=watched.made_up,
                ),
                warnings=warnings,
                publish=take,
                every_seconds=every_seconds,
                list_every_seconds=sources.list_every_seconds,
                timing=self._timing,
            )

    def _history(self, watched: Watched, *, warn: Callable[[str], None]) -> InstanceHistory | None:
        """Stores what is shown of the account's machines."""
        if watched.made_up or watched.listing is not None:
            return None
        from stationmaster.control.monitoring.instance_history import InstanceHistory

        series, limit = self._installation.store.series, self._installation.settings.metrics.cap_bytes
        return InstanceHistory(partial(series.add_of_machine, cap_bytes=limit), warn=warn)


def _require_sense(watched: Watched) -> None:
    wrong = next((word for word in watched.ids if not (word.isascii() and word.isdigit())), None)
    if wrong is not None:
        raise UserError(f"{wrong!r} is not the id of a machine", hint="for example: --instances 30007012,30007267")
    if watched.made_up and watched.notify:
        raise UserError("notices about made-up machines are not sent", hint="leave out --notify or --mock")
    if watched.made_up and watched.listing is not None:
        raise UserError("--mock and --from exclude each other", hint="leave out one of them")
