"""Machines that answer the monitor as a test says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.monitor import Monitor, Warnings
from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting, Sightings
from stationmaster.errors import ProviderError, StationmasterError
from stationmaster.money import MicroDollars
from tests.support.monitoring.virtual_time import VirtualTime

ONE = Sighting(id="1", status="running", gpu_percent=50.0, cost_per_hour=MicroDollars(3_600_000), started_at=0.0)
TWO = replace(ONE, id="2")
LOG = b"Epoch 1/3\nStep 100: Loss = 2.345\n"


def listed(*machines: Sighting, unreadable: tuple[str, ...] = ()) -> Sightings:
    return Sightings(machines=machines, unreadable=unreadable)


def piece(data: bytes, *, file: str = "a", offset: int = 1, continues: bool = False) -> LogPiece:
    return LogPiece(data=data, position=LogPosition(file=file, offset=offset), continues=continues)


@dataclass
class ScriptedSource:
    """A listing (None: it never answers) and logs, which grow by what a test appends; some never answer."""

    seen: Sightings | ProviderError | None = None
    logs: dict[str, bytes | StationmasterError] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    list_calls: int = 0
    reads: list[str] = field(default_factory=list)
    reading: int = 0
    most_reading: int = 0
    forgotten: list[str] = field(default_factory=list)

    async def machines(self) -> Sightings:
        self.list_calls += 1
        if self.seen is None:
            await asyncio.Event().wait()
        if isinstance(self.seen, ProviderError):
            raise self.seen
        assert self.seen is not None
        return replace(self.seen)  # the same object would mean that nothing was asked

    async def read(self, machine: Sighting, since: LogPosition | None) -> LogPiece:
        self.reads.append(machine.id)
        self.reading += 1
        self.most_reading = max(self.most_reading, self.reading)
        try:
            await (asyncio.Event().wait() if machine.id in self.silent else asyncio.sleep(0))
        finally:
            self.reading -= 1
        log = self.logs.get(machine.id, LOG)
        if isinstance(log, StationmasterError):
            raise log
        start = since.offset if since else 0
        return piece(log[start:], offset=len(log), continues=since is not None)

    async def forget(self, machine_id: str) -> None:
        self.forgotten.append(machine_id)

    async def close(self) -> None:
        """Nothing is open."""


class Bench:
    """A monitor of a scripted source in virtual time."""

    def __init__(
        self,
        source: ScriptedSource,
        *,
        every_seconds: float = 10.0,
        list_every_seconds: float = 10.0,
        api_seconds: float = 10.0,
        **fleet: object,
    ) -> None:
        self.time = VirtualTime()
        self.looks: list[MonitorLook] = []
        warnings = Warnings()
        self.fleet = Fleet(warn=warnings.add, **fleet)  # type: ignore[arg-type]  # by name
        self.monitor = Monitor(
            listing=source,
            logs=source,
            fleet=self.fleet,
            warnings=warnings,
            publish=self.looks.append,
            every_seconds=every_seconds,
            list_every_seconds=list_every_seconds,
            api_seconds=api_seconds,
            timing=self.time.timing,
        )
        self.running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Bench:
        self.running = asyncio.create_task(self.monitor.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.running is not None
        self.running.cancel()
        await asyncio.wait({self.running})

    @property
    def warnings(self) -> list[str]:
        return [line for look in self.looks for line in look.warnings]
