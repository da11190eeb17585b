"""The newest log lines of many jobs, read piece by piece from where the last look ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from stationmaster.model import LogChunk
from stationmaster.printable import plain
from stationmaster.station.history import Logs
from stationmaster.tui.fleet import LogEntry
from stationmaster.tui.sources.log_ring import LINES_EACH, LogRing

_FIRST_PIECES = 4
_PIECES = 100
_JOBS_PER_LOOK = 10


class LogTail:
    """The last lines of one job's log. What a progress bar overwrote is not kept."""

    def __init__(self, logs: Logs, job_id: str, *, most: int, first_pieces: int = _FIRST_PIECES) -> None:
        self._logs = logs
        self._job_id = job_id
        self._first_pieces = first_pieces
        self._after: int | None = None
        self._rest = b""
        self.lines: deque[str] = deque(maxlen=most)
        self.count = 0  # of all lines read so far

    def read(self) -> int:
        """Read what is new; how many lines that are."""
        before = self.count
        while pieces := self._pieces():
            self._after = pieces[-1][0]
            for _, chunk in pieces:
                self._add(chunk.data)
            if len(pieces) < _PIECES:
                break
        return self.count - before

    def shown(self) -> list[str]:
        """The lines, and the one that is not finished yet."""
        rest = _as_shown(self._rest)
        return [*self.lines, rest] if rest else list(self.lines)

    def _pieces(self) -> Sequence[tuple[int, LogChunk]]:
        if self._after is None:
            return self._logs.latest(self._job_id, limit=self._first_pieces)
        return self._logs.of_job(self._job_id, after_seq=self._after, limit=_PIECES)

    def _add(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-65536:]
        for each in whole:
            self.lines.append(_as_shown(each))
            self.count += 1


class FleetLogs:
    """The last lines of every running job. A look reads a few jobs, in turns: a server is asked for each of them."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._tails: dict[str, LogTail] = {}
        self._turns: list[str] = []
        self._ring = LogRing()

    def read(self, job_ids: Iterable[str]) -> tuple[LogEntry, ...]:
        wanted = set(job_ids)
        new = sorted(wanted - set(self._turns))
        self._turns = [*(one for one in self._turns if one in wanted), *new]
        now, later = self._turns[:_JOBS_PER_LOOK], self._turns[_JOBS_PER_LOOK:]
        self._turns = [*later, *now]
        for job_id in now:
            tail = self._tails.setdefault(job_id, LogTail(self._logs, job_id, most=LINES_EACH))
            if fresh := tail.read():
                self._ring.add(job_id, list(tail.lines)[-fresh:])
        self._forget(wanted)
        return self._ring.entries()

    def clear(self) -> None:
        self._ring.clear()

    def _forget(self, wanted: set[str]) -> None:
        for gone in self._tails.keys() - wanted:
            del self._tails[gone]
        self._ring.keep(wanted)


def _as_shown(data: bytes) -> str:
    """What a terminal shows of a line that redraws itself."""
    return plain(data.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")).rstrip()
