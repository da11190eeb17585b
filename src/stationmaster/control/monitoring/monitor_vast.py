"""Where `monitor` looks at rented machines: Vast.ai's list, and their logs over SSH."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from stationmaster.control.monitoring.instance_metrics import LOG_LINES
from stationmaster.control.monitoring.monitor import Sighting, Sightings
from stationmaster.control.wiring.providers import ssh_key_path
from stationmaster.errors import CommandFailed, ConfigInvalid, Unreachable
from stationmaster.model import Access, SshAccess
from stationmaster.providers.base import Pause
from stationmaster.providers.vastai.calls import INTERVALS, Calls
from stationmaster.providers.vastai.machine_status import machine
from stationmaster.providers.vastai.retries import Retries
from stationmaster.providers.vastai.telemetry import TelemetryRow, read_telemetry
from stationmaster.remote.base import Remote, require_success
from stationmaster.remote.connect import connect
from stationmaster.settings import Settings
from stationmaster.store.store import Store

_TAIL_SECONDS = 8.0
_NO_LOG = 3
_NEWEST_LOG = f"""
IFS=
pattern=${{1:-${{STATIONMASTER_WORKSPACE:-/workspace}}/output/*/training.log}}
newest=$(ls -1td -- $pattern 2>/dev/null | head -n 1)
[ -n "$newest" ] || {{ echo "no file matches $pattern" >&2; exit {_NO_LOG}; }}
tail -c 65536 -- "$newest" | tail -n {LOG_LINES}
"""
"""A bar that redraws itself for hours is one long line, so bytes are cut before lines."""

_DOWN = ("exited", "stopped", "frozen")


def open_vast_source(
    settings: Settings, store: Store, *, log_path: str | None, pause: Pause = asyncio.sleep
) -> VastSource:
    """The clients of all accounts in the settings. One try per look, because the next look follows soon; only a rate
    limit is waited for, by `pause`."""
    keys = settings.vastai.keys_by_account()
    if not keys:
        raise ConfigInvalid(
            "Vast.ai needs a key and none is set",
            hint="set VASTAI_API_KEY (console.vast.ai, Account, API keys), or try --mock",
        )
    calls = [
        Calls(
            base_url=settings.vastai.api_base_url,
            api_key=key,
            account=account,
            limiter=store.limiter,
            intervals={endpoint: seconds * settings.vastai.call_spacing for endpoint, seconds in INTERVALS.items()},
            retries=Retries(attempts=1),
            pause=pause,
        )
        for account, key in keys.items()
    ]
    reach = partial(connect, ssh=settings.ssh)
    return VastSource(*calls, key_path=ssh_key_path(settings), connect=reach, log_path=log_path)


class VastSource:
    """Lists with each account's key; connections to machines stay open from cycle to cycle."""

    def __init__(
        self, *calls: Calls, key_path: Path, connect: Callable[[Access], Remote], log_path: str | None = None
    ) -> None:
        """`log_path` is a file name pattern on the machines that replaces the usual one."""
        self._calls = calls
        self._key_path = key_path
        self._connect = connect
        self._log_path = log_path or ""
        self._open: dict[str, tuple[SshAccess, Remote]] = {}

    async def machines(self) -> Sightings:
        """The machines of all accounts. Raises if one account does not answer, because unknown is not gone."""
        answers = await asyncio.gather(*(read_telemetry(calls) for calls in self._calls))
        return Sightings(
            machines=tuple(_sighting(row, key_path=self._key_path) for answer in answers for row in answer.rows),
            unreadable=tuple(words for answer in answers for words in answer.unreadable),
        )

    async def log_tail(self, machine: Sighting) -> bytes:
        """Use the address that worked last, else try each in turn."""
        if not self._key_path.exists():
            raise ConfigInvalid(f"there is no SSH key at {self._key_path}", hint="run `stationmaster keys setup`")
        problem = Unreachable("there is no way to log in yet")
        for access in sorted(machine.accesses, key=lambda access: access != self._last(machine.id)):
            try:
                return await self._tail(machine.id, access, seconds=_TAIL_SECONDS / len(machine.accesses))
            except Unreachable as silence:
                problem = silence
                await self._forget(machine.id)
        raise problem

    async def close(self) -> None:
        await asyncio.gather(*(self._forget(name) for name in list(self._open)))

    async def _tail(self, name: str, access: SshAccess, *, seconds: float) -> bytes:
        argv = ["sh", "-c", _NEWEST_LOG, "sh", self._log_path]
        done = await self._remote(name, access).run(argv, timeout=seconds)
        if done.exit_status == _NO_LOG:
            raise CommandFailed(done.stderr.decode(errors="replace").strip())
        require_success(argv, done)
        return done.stdout

    def _remote(self, name: str, access: SshAccess) -> Remote:
        known = self._open.get(name)
        if known is not None and known[0] == access:
            return known[1]
        remote = self._connect(access)
        self._open[name] = (access, remote)
        return remote

    def _last(self, name: str) -> SshAccess | None:
        known = self._open.get(name)
        return None if known is None else known[0]

    async def _forget(self, name: str) -> None:
        known = self._open.pop(name, None)
        if known is not None:
            await known[1].close()


def _sighting(row: TelemetryRow, *, key_path: Path) -> Sighting:
    """Host keys of machines that others rented are unknown; only a log is read, and no secret is sent."""
    seen = machine(row, key_path=str(key_path), job_root="")
    status = "exited" if row.actual_status in _DOWN else row.actual_status or "created"
    accesses = [replace(access, unverified=True) for access in seen.accesses if isinstance(access, SshAccess)]
    return Sighting(
        id=str(row.id),
        status=status,
        label=row.label or "",
        gpu_type=(row.gpu_name or "unknown") if (row.num_gpus or 1) == 1 else f"{row.num_gpus}x {row.gpu_name}",
        gpu_percent=row.gpu_util if status == "running" else None,  # the last value stays listed after a stop
        gpu_celsius=row.gpu_temp if status == "running" else None,
        memory_percent=row.memory_percent if status == "running" else None,
        cost_per_hour=seen.price_per_hour,
        started_at=row.start_date,
        accesses=tuple(accesses),
    )
