"""Days of the terminal app in minutes: the real app, feed, history and charts, in a time that passes faster.

Machines come and go, stop to answer and come back; a person opens and closes screens, sorts, searches and resizes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import tracemalloc
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from weakref import WeakSet

from textual.pilot import Pilot
from textual.widget import Widget

from stationmaster.config import load_settings
from stationmaster.control.monitoring.feed import BackgroundFeed
from stationmaster.control.monitoring.groups import Groups
from stationmaster.control.monitoring.mock import MockMachines
from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting, Sightings
from stationmaster.control.monitoring.timing import Timing, accelerated
from stationmaster.errors import ProviderError, Unreachable
from stationmaster.station.local.monitoring import LocalMonitoring
from stationmaster.station.local.monitoring_sources import Sources
from stationmaster.station.local.station import LocalStation
from stationmaster.station.monitoring import Watched
from stationmaster.tui.app import FleetApp
from stationmaster.tui.screens.fleet import FleetScreen
from stationmaster.tui.sources.machines import MachinesSource

_SIZES = ((80, 24), (300, 100), (120, 40), (200, 60))
_ACTIONS = (
    *("down", "down", "enter", "tab", "tab", "down", "up", "escape"),
    *("s", "S", "slash", "3", "0", "0", "enter", "escape", "escape"),
    *("question_mark", "escape", "g", "g", "g", "c", "t", "t", "r", "p", "p"),
    *("end", "enter", "slash", "L", "enter", "escape", "escape", "home", "x", "pagedown"),
)
_LIFE_HOURS = 5.0  # of one rented machine
_OUTAGE_EVERY_SECONDS, _OUTAGE_SECONDS = 3000.0, 120.0
_SILENT_SHARE = 0.003
_LINES_PER_READ = 4
_MIB = 1 << 20
_SETTLE_TRIES = 100
_TOAST_SECONDS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What the process holds at one hour, with the fleet screen in front."""

    hour: float
    looks: int
    resident_mib: float
    traced_mib: float | None  # None without tracemalloc
    widgets: int
    tasks: int
    threads: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    vitals: tuple[Vitals, ...]
    left: tuple[str, ...]  # threads, files and tasks that were not there before

    def grown_mib(self, *, since_hour: float) -> float:
        """Resident memory gained since the first sample at or after this hour."""
        began = next(each for each in self.vitals if each.hour >= since_hour)
        return self.vitals[-1].resident_mib - began.resident_mib

    def traced_mib(self, *, since_hour: float) -> float | None:
        began = next(each for each in self.vitals if each.hour >= since_hour)
        last = self.vitals[-1].traced_mib
        return None if last is None or began.traced_mib is None else last - began.traced_mib


async def soak(
    folder: Path,
    *,
    machines: int,
    hours: float,
    every_seconds: float,
    factor: float,
    sample_hours: float = 2.5,
    least_looks: int = 0,
    is_stored: bool = True,
) -> Soaked:
    """Run the app for so many hours of a time that passes `factor` times as fast; `every_seconds` are of that time.

    `is_stored`: what is shown goes into the home's store, as always; it is what takes longest with many machines.
    On a computer that is too busy for that, hours pass with fewer looks: it goes on until there were `least_looks`.
    """
    before = _running_and_open()
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "STATIONMASTER_HOME": str(folder / "home")}
    with closing(LocalStation(load_settings(environ, folder=folder), environ)) as station:
        timing = accelerated(factor)
        monitoring = _SoakMonitoring(station, timing)
        places = ComingAndGoing(machines, timing)
        feed = monitoring.begin(places, every_seconds=every_seconds, is_stored=is_stored)
        source = MachinesSource(
            feed,
            title="Soak",
            interval=every_seconds / factor,
            open_metrics=lambda: station.metrics,
            least_seconds=1 / factor,
        )
        app = _CountingApp(source, now=timing.clock, toast_seconds=_TOAST_SECONDS / factor)
        async with app.run_test(size=_SIZES[0]) as pilot:
            vitals = await _use(pilot, app, timing, hours=hours, sample_hours=sample_hours, least_looks=least_looks)
        assert app.failure is None, app.failure
    gc.collect()
    return Soaked(vitals=tuple(vitals), left=tuple((_running_and_open() - before).elements()))


class ComingAndGoing:
    """A listing and its logs: each place is taken by another machine every few hours, at its own time."""

    def __init__(self, machines: int, timing: Timing) -> None:
        self._count = machines
        self._timing = timing
        self._began = timing.clock()
        self._dice = Random(machines)
        self._cohorts: dict[int, MockMachines] = {}

    async def machines(self) -> Sightings:
        passed = self._timing.clock() - self._began
        if passed % _OUTAGE_EVERY_SECONDS > _OUTAGE_EVERY_SECONDS - _OUTAGE_SECONDS:
            raise ProviderError("the service is down for a while")
        wanted = {_name(self._cohort(place, passed), place) for place in range(self._count)}
        cohorts = {self._cohort(place, passed) for place in range(self._count)}
        self._cohorts = {number: self._cohorts.get(number) or self._made(number) for number in sorted(cohorts)}
        listed = [each for cohort in self._cohorts.values() for each in (await cohort.machines()).machines]
        return Sightings(machines=tuple(each for each in listed if each.id in wanted))

    async def read(self, machine: Sighting, since: LogPosition | None) -> LogPiece:
        cohort = self._cohorts.get(int(machine.id[:-4]))
        if cohort is None or self._dice.random() < _SILENT_SHARE:
            raise Unreachable("the machine does not answer; its state is unknown")
        piece = await cohort.read(machine, since)
        # A trainer that prints seldom: what is soaked is not the parsing of lines.
        lines = piece.data.splitlines(keepends=True)[-_LINES_PER_READ:]
        return replace(piece, data=b"".join(lines))

    async def forget(self, machine_id: str) -> None:
        """Nothing is open."""

    async def close(self) -> None:
        """Nothing is open."""

    def _cohort(self, place: int, passed: float) -> int:
        return 3000 + int(passed / 3600 / _LIFE_HOURS + place / self._count)

    def _made(self, number: int) -> MockMachines:
        names = tuple(_name(number, place) for place in range(self._count))
        return MockMachines(ids=names, clock=self._timing.clock, seed=number)


class _SoakMonitoring(LocalMonitoring):
    def __init__(self, station: LocalStation, timing: Timing) -> None:
        super().__init__(station.installation, timing=timing)

    def begin(self, machines: ComingAndGoing, *, every_seconds: float, is_stored: bool) -> BackgroundFeed:
        """As for rented machines."""
        groups = Groups({"trainings": ("mock-training",), "idle": ("mock-idle",)})
        sources = Sources(listing=machines, logs=machines, list_every_seconds=every_seconds, ids=())
        watched = Watched() if is_stored else Watched(listing="nothing of a given list is stored")
        return BackgroundFeed(partial(self._monitor, watched, groups, sources, every_seconds), groups=groups.names)


class _CountingApp(FleetApp):
    looks = 0
    seen_widgets: WeakSet[Widget] = WeakSet()  # noqa: RUF012  # those of all screens that are still kept somewhere

    def on_fleet_app_looked(self, event: FleetApp.Looked) -> None:
        self.looks += 1
        super().on_fleet_app_looked(event)


async def _use(
    pilot: Pilot[None], app: _CountingApp, timing: Timing, *, hours: float, sample_hours: float, least_looks: int
) -> list[Vitals]:
    """Act like a person until the hours have passed."""
    vitals: list[Vitals] = []
    turn = 0
    while (hour := timing.monotonic() / 3600) < hours or app.looks < least_looks:
        if hour >= sample_hours * len(vitals):
            await _back_to_fleet(pilot, app)
            vitals.append(_vitals(hour, app))
        await pilot.press(_ACTIONS[turn % len(_ACTIONS)])
        app.seen_widgets.update(app.screen.query("*"))
        if turn % 25 == 0:
            await pilot.resize_terminal(*_SIZES[turn // 25 % len(_SIZES)])
        await asyncio.sleep(0.02)
        turn += 1
    await _back_to_fleet(pilot, app)
    return [*vitals, _vitals(hour, app)]


async def _back_to_fleet(pilot: Pilot[None], app: FleetApp) -> None:
    while not isinstance(app.screen, FleetScreen):
        await pilot.press("escape")
    for _ in range(_SETTLE_TRIES):  # threads of a detail or an action end by themselves, soon
        if not any(each.name in ("detail", "action") for each in threading.enumerate()):
            return
        await asyncio.sleep(0.05)


def _vitals(hour: float, app: _CountingApp) -> Vitals:
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return Vitals(
        hour=hour,
        looks=app.looks,
        resident_mib=resident / _MIB,
        traced_mib=tracemalloc.get_traced_memory()[0] / _MIB if tracemalloc.is_tracing() else None,
        widgets=len(app.seen_widgets),
        tasks=len(asyncio.all_tasks()),
        threads=threading.active_count(),
        files=len(_open_files()),
    )


def _running_and_open() -> Counter[str]:
    """What this process has: others close what is theirs meanwhile, so that only what is new can be counted."""
    running = [f"thread {each.name}" for each in threading.enumerate()]
    running += [f"task {each.get_name()}" for each in asyncio.all_tasks()]
    return Counter([*running, *_open_files()])


def _open_files() -> list[str]:
    names = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder itself, while it is read
            names.append(f"{each.readlink()}")
    return names


def _name(cohort: int, place: int) -> str:
    return f"{cohort}{place:04d}"
