"""Logs of machines over SSH: the newest one, from the place where the last read ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from stationmaster.control.monitoring.log_follower import LogFollower
from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting
from stationmaster.errors import ConfigInvalid, RemoteError, Unreachable
from stationmaster.model import Access, SshAccess
from stationmaster.remote.base import Remote

_LOGIN_SECONDS = 8.0
_CLOSE_SECONDS = 1.0
_PAUSE_SECONDS = 2.0


class SshLogs:
    """Connections stay open from look to look, and follow a machine to another address."""

    def __init__(
        self,
        *,
        key_path: Path,
        connect: Callable[[Access], Remote],
        log_path: str | None = None,
        pause_seconds: float = _PAUSE_SECONDS,
        login_seconds: float = _LOGIN_SECONDS,
    ) -> None:
        """`log_path` is a file name pattern on the machines that replaces the usual one. They look at it every
        `pause_seconds`, at most every 2. A login may take `login_seconds`, over all addresses of a machine."""
        self.key_path = key_path
        self._connect = connect
        self._log_path = log_path or ""
        self._pause_seconds = min(pause_seconds, _PAUSE_SECONDS)
        self._login_seconds = login_seconds
        self._followed: dict[str, LogFollower] = {}

    async def read(self, machine: Sighting, since: LogPosition | None) -> LogPiece:
        """What has come since, at once; only a login is waited for. Uses the address that worked, else tries each."""
        if not self.key_path.exists():
            raise ConfigInvalid(f"there is no SSH key at {self.key_path}", hint="run `stationmaster keys setup`")
        known = self._followed.get(machine.id)
        if known is None or known.access not in machine.accesses or not known.continues(since):
            known = await self._open(machine, since)
        try:
            return known.take()
        except RemoteError:
            if known.has_ended:
                await self.forget(machine.id)
            raise

    async def forget(self, machine_id: str) -> None:
        known = self._followed.pop(machine_id, None)
        if known is not None:
            await known.close()

    async def close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*(self.forget(name) for name in list(self._followed)))
        except TimeoutError:
            return  # the process ends anyway, and with its connections what it started on the machines

    async def _open(self, machine: Sighting, since: LogPosition | None) -> LogFollower:
        await self.forget(machine.id)
        problem: RemoteError = Unreachable("there is no way to log in yet")
        seconds = self._login_seconds / max(1, len(machine.accesses))
        for access in machine.accesses:
            try:
                return await self._follow(machine.id, access, since, seconds=seconds)
            except Unreachable as silence:
                problem = silence
        raise problem

    async def _follow(self, name: str, access: SshAccess, since: LogPosition | None, *, seconds: float) -> LogFollower:
        follower = LogFollower(self._connect(access), access, self._log_path, since, pause_seconds=self._pause_seconds)
        self._followed[name] = follower
        try:
            await follower.answered(seconds=seconds)
        except BaseException:
            await self.forget(name)
            raise
        return follower
