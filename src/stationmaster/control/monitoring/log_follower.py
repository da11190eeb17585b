"""Follows the newest log of one machine: a small loop there sends what was added, as one line per piece.

To run a command for every look would cost three times as much: a hundred machines would take a tenth of a core.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from contextlib import suppress

from stationmaster.control.monitoring.sources import LogPiece, LogPosition
from stationmaster.errors import CommandFailed, StationmasterError, Unreachable
from stationmaster.model import SshAccess
from stationmaster.remote.base import Remote, Stream

_FIRST_LINES = 100
_MOST_BYTES = 65536
_ALIVE_SECONDS = 5  # the loop says at least this often that it is alive
_SILENCE_SECONDS = 15.0
_LONGEST_LINE = 4 * _MOST_BYTES
_MOST_WAITING_BYTES = 2 * _MOST_BYTES
_FOLLOW_NEWEST = f"""
IFS=
pattern=${{1:-${{STATIONMASTER_WORKSPACE:-/workspace}}/output/*/training.log}}
file=$2 offset=$3 pause=$4 rounds=$5 quiet=0 missing=
while :; do
  newest=$(ls -1td -- $pattern 2>/dev/null | head -n 1)
  about=
  [ -z "$newest" ] || about=$(stat -Lc '%i %s' -- "$newest" 2>/dev/null || stat -Lf '%i %z' -- "$newest" 2>/dev/null)
  quiet=$((quiet + 1))
  if [ -z "$about" ]; then
    [ -n "$missing" ] || {{ echo "! no file matches $pattern"; missing=yes quiet=0; }}
  else
    size=${{about##* }} now="${{about%% *}}:$newest" from=$offset
    [ "$now" = "$file" ] && [ "$offset" -le "$size" ] && [ $((size - offset)) -le {_MOST_BYTES} ] || from=-1
    if [ "$from" -lt 0 ] || [ "$from" -lt "$size" ] || [ -n "$missing" ]; then
      first=$from
      [ "$from" -ge 0 ] || first=$((size > {_MOST_BYTES} ? size - {_MOST_BYTES} : 0))
      data=$(tail -c "+$((first + 1))" -- "$newest" | head -c "$((size - first))" |
        if [ "$from" -lt 0 ]; then tail -n {_FIRST_LINES}; else cat; fi | base64 | tr -d '\\n')
      printf '%s %s %s %s\\n' "$from" "$size" "$data" "$now"
      file=$now offset=$size missing= quiet=0
    fi
  fi
  [ "$quiet" -lt "$rounds" ] || {{ echo .; quiet=0; }}
  sleep "$pause" || exit 1
done
"""
"""A bar that redraws itself for hours is one long line, so bytes are cut before lines. What a burst wrote beyond the
limit is skipped: -1 says that a piece does not follow the one before. It ends with its connection, at the latest when
it says that it is alive."""


class LogFollower:
    """One stream. Ended by a failure, which `take` raises; then another one has to be opened."""

    def __init__(
        self, remote: Remote, access: SshAccess, log_path: str, since: LogPosition | None, *, pause_seconds: float
    ) -> None:
        self.access = access
        self._remote = remote
        self._taken = since
        self._pieces: list[LogPiece] = []
        self._missing: str | None = None  # why there is no log
        self._failure: StationmasterError | None = None
        self._has_answered, self._has_room = asyncio.Event(), asyncio.Event()
        file, offset = (since.file, since.offset) if since else ("", 0)
        rounds = max(1, round(_ALIVE_SECONDS / pause_seconds))
        argv = [
            "sh", "-c", _FOLLOW_NEWEST, "sh", log_path, file, str(offset), f"{pause_seconds:g}", str(rounds)
        ]  # fmt: skip
        self._silence_seconds = max(_SILENCE_SECONDS, 3 * pause_seconds)
        self._task = asyncio.create_task(self._follow(argv))

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    def continues(self, since: LogPosition | None) -> bool:
        """Whether the next piece follows this position."""
        return since == self._taken

    async def answered(self, *, seconds: float) -> None:
        """Wait for the first answer. Raises Unreachable if it does not come in time, else why there is none."""
        try:
            async with asyncio.timeout(seconds):
                await self._has_answered.wait()
        except TimeoutError:
            raise Unreachable(f"{self._name} did not answer within {seconds:g} s") from None
        if self._failure is not None and not self._pieces:
            raise self._failure

    def take(self) -> LogPiece:
        """Everything that came since the last call. Raises why there is nothing to read."""
        if not self._pieces:
            if self._task.done():
                self._task.result()  # raises what nobody expected
                raise self._failure or Unreachable(f"{self._name} is no longer followed")
            if self._missing is not None or self._taken is None:
                raise CommandFailed(self._missing or f"{self._name} has no log yet")
            return LogPiece(data=b"", position=self._taken, continues=True)
        pieces, self._pieces = self._pieces, []
        self._has_room.set()
        anew = max((number for number, piece in enumerate(pieces) if not piece.continues), default=None)
        wanted = pieces[anew or 0 :]
        self._taken = wanted[-1].position
        data = b"".join(piece.data for piece in wanted)
        return LogPiece(
            data=data[-_MOST_BYTES:], position=self._taken, continues=anew is None and len(data) <= _MOST_BYTES
        )

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._remote.close()

    async def _follow(self, argv: list[str]) -> None:
        try:
            async with self._remote.stream(argv) as stream:
                await self._read(stream)
            told = stream.stderr.decode(errors="replace").strip()
            self._failure = CommandFailed(f"reading the log ended: {told[-200:] or 'no reason given'}")
        except StationmasterError as problem:
            self._failure = problem
        except TimeoutError:
            self._failure = Unreachable(f"{self._name} has not answered for {self._silence_seconds:g} s")
        finally:
            self._has_answered.set()

    async def _read(self, stream: Stream) -> None:
        rest, chunks = b"", aiter(stream)
        while True:
            async with asyncio.timeout(self._silence_seconds):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                raise CommandFailed("the machine's answer makes no sense")
            for line in lines:
                self._take_line(line)
            while sum(len(piece.data) for piece in self._pieces) > _MOST_WAITING_BYTES:  # the machine has to wait
                self._has_room.clear()
                await self._has_room.wait()

    def _take_line(self, line: bytes) -> None:
        if line.startswith(b"! "):
            self._missing = line[2:].decode(errors="replace")
        elif line != b".":
            self._missing = None
            self._pieces.append(_piece(line))
        self._has_answered.set()

    @property
    def _name(self) -> str:
        return f"{self.access.host}:{self.access.port}"


def _piece(line: bytes) -> LogPiece:
    try:
        start, size, data, file = line.split(b" ", 3)
        return LogPiece(
            data=base64.b64decode(data),
            position=LogPosition(file=file.decode(errors="replace"), offset=int(size)),
            continues=int(start) >= 0,
        )
    except (ValueError, binascii.Error):
        raise CommandFailed(f"the machine's answer makes no sense: {line[:80]!r}") from None
