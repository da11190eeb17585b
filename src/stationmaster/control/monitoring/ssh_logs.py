"""Logs of machines over SSH: the newest one, from the place where the last read ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting
from stationmaster.errors import CommandFailed, ConfigInvalid, Unreachable
from stationmaster.model import Access, SshAccess
from stationmaster.remote.base import Remote, require_success

_READ_SECONDS = 8.0
_CLOSE_SECONDS = 1.0
_NO_LOG = 3
_FIRST_LINES = 100
_MOST_BYTES = 65536
_READ_NEWEST = f"""
IFS=
pattern=${{1:-${{STATIONMASTER_WORKSPACE:-/workspace}}/output/*/training.log}}
newest=$(ls -1td -- $pattern 2>/dev/null | head -n 1)
[ -n "$newest" ] || {{ echo "no file matches $pattern" >&2; exit {_NO_LOG}; }}
about=$(stat -Lc '%i %s' -- "$newest" 2>/dev/null || stat -Lf '%i %z' -- "$newest") || exit 1
inode=${{about%% *}}
size=${{about##* }}
if [ "$inode:$newest" = "$2" ] && [ "$3" -le "$size" ]; then from=$3; else from=-1; fi
if [ "$from" -lt 0 ] || [ $((size - from)) -gt {_MOST_BYTES} ]; then
  from=-1
  first=$((size > {_MOST_BYTES} ? size - {_MOST_BYTES} : 0))
else
  first=$from
fi
printf '%s %s %s\\n' "$from" "$size" "$inode:$newest"
[ "$first" -lt "$size" ] || exit 0
tail -c "+$((first + 1))" -- "$newest" | head -c "$((size - first))" |
  if [ "$from" -lt 0 ]; then tail -n {_FIRST_LINES}; else cat; fi
"""
"""A bar that redraws itself for hours is one long line, so bytes are cut before lines. What a burst wrote beyond the
limit is skipped: the first line of the answer says so by -1."""


class SshLogs:
    """Connections stay open from look to look, and follow a machine to another address."""

    def __init__(self, *, key_path: Path, connect: Callable[[Access], Remote], log_path: str | None = None) -> None:
        """`log_path` is a file name pattern on the machines that replaces the usual one."""
        self.key_path = key_path
        self._connect = connect
        self._log_path = log_path or ""
        self._open: dict[str, tuple[SshAccess, Remote]] = {}

    async def read(self, machine: Sighting, since: LogPosition | None) -> LogPiece:
        """Use the address that worked last, else try each in turn."""
        if not self.key_path.exists():
            raise ConfigInvalid(f"there is no SSH key at {self.key_path}", hint="run `stationmaster keys setup`")
        problem = Unreachable("there is no way to log in yet")
        for access in sorted(machine.accesses, key=lambda access: access != self._last(machine.id)):
            try:
                return await self._read(machine.id, access, since, seconds=_READ_SECONDS / len(machine.accesses))
            except Unreachable as silence:
                problem = silence
                await self.forget(machine.id)
        raise problem

    async def forget(self, machine_id: str) -> None:
        known = self._open.pop(machine_id, None)
        if known is not None:
            await known[1].close()

    async def close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*(self.forget(name) for name in list(self._open)))
        except TimeoutError:
            return  # the process ends anyway, and nothing of it stays on the machines

    async def _read(self, name: str, access: SshAccess, since: LogPosition | None, *, seconds: float) -> LogPiece:
        file, offset = (since.file, since.offset) if since else ("", 0)
        argv = ["sh", "-c", _READ_NEWEST, "sh", self._log_path, file, str(offset)]
        done = await (await self._remote(name, access)).run(argv, timeout=seconds)
        if done.exit_status == _NO_LOG:
            raise CommandFailed(done.stderr.decode(errors="replace").strip())
        require_success(argv, done)
        return _piece(done.stdout)

    async def _remote(self, name: str, access: SshAccess) -> Remote:
        known = self._open.get(name)
        if known is not None and known[0] == access:
            return known[1]
        await self.forget(name)
        remote = self._connect(access)
        self._open[name] = (access, remote)
        return remote

    def _last(self, name: str) -> SshAccess | None:
        known = self._open.get(name)
        return None if known is None else known[0]


def _piece(answer: bytes) -> LogPiece:
    head, _, data = answer.partition(b"\n")
    try:
        start, size, file = head.decode(errors="replace").split(" ", 2)
        position = LogPosition(file=file, offset=int(size))
        return LogPiece(data=data, position=position, continues=int(start) >= 0)
    except ValueError:
        raise CommandFailed(f"the machine's answer makes no sense: {head[:80]!r}") from None
