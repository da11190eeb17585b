"""The last lines of many logs, in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from stationmaster.tui.fleet import LogEntry

LINES_EACH = 10


class LogRing:
    """Keeps ten lines of each training, so that a loud one does not push out the others."""

    def __init__(self) -> None:
        self._entries: dict[str, deque[tuple[int, LogEntry]]] = {}
        self._count = 0

    def add(self, id: str, texts: Sequence[str]) -> None:
        ring = self._entries.setdefault(id, deque(maxlen=LINES_EACH))
        for text in texts[-LINES_EACH:]:
            self._count += 1
            ring.append((self._count, LogEntry(id=id, line=((f"#{id} ", "accent"), (text, "")))))

    def keep(self, ids: Collection[str]) -> None:
        """Forget the lines of all others."""
        for gone in self._entries.keys() - ids:
            del self._entries[gone]

    def clear(self) -> None:
        self._entries.clear()

    def entries(self) -> tuple[LogEntry, ...]:
        found = [numbered for ring in self._entries.values() for numbered in ring]
        found.sort(key=lambda numbered: numbered[0])
        return tuple(entry for _, entry in found)
