"""What the monitor asks: a listing of machines, and their logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.model import SshAccess
from stationmaster.money import ZERO, MicroDollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One machine as its provider lists it."""

    id: str
    status: str
    label: str = ""
    gpu_type: str = "unknown"
    gpu_percent: float | None = None
    gpu_celsius: float | None = None
    memory_percent: float | None = None
    cost_per_hour: MicroDollars = ZERO
    started_at: float | None = None
    accesses: tuple[SshAccess, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    machines: tuple[Sighting, ...]
    unreadable: tuple[str, ...] = ()  # entries that could not be parsed, described
    at: float | None = None  # when the list was made, if not just now
    last: bool = False  # no other list will follow


class Listing(Protocol):
    async def machines(self) -> Sightings:
        """List all machines in one call; the same object if nothing changed.

        Raises a ProviderError when there is no reliable answer, UserError when there never will be one.
        """

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """How far a log was read. Another `file` means that the newest log of the machine is another one."""

    file: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """The next bytes of a log. `continues`: they follow those of the position that was asked for."""

    data: bytes
    position: LogPosition
    continues: bool


class Logs(Protocol):
    async def read(self, machine: Sighting, since: LogPosition | None) -> LogPiece:
        """Read what was written to the newest log since a position, else its last lines.

        Raises a StationmasterError with the reason if it cannot.
        """

    async def forget(self, machine_id: str) -> None:
        """Close what is open to a machine."""

    async def close(self) -> None: ...
