"""How much Vast.ai may answer to each kind of call; an answer past its limit is not read to the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MIB = 1 << 20  # not from where HTTP is: `monitor --from` reads the same rows without it

MOST_BYTES: Mapping[str, int] = {
    "search": 4 * MIB,  # 64 offers have a quarter of a megabyte
    "create": MIB,
    "list": 4 * MIB,  # 25 instances have a third of a megabyte
    "read": MIB,
    "manage": MIB,
    "destroy": MIB,
    "logs": MIB,  # the URL of a log
    "keys": MIB,
    "charges": 4 * MIB,
    "user": MIB,
}
"""Bytes of one unpacked answer, by endpoint."""

LOG_BYTES = 16 * MIB
"""Bytes of a container's log, which the machine writes."""

MOST_PAGES = 400
MOST_ROWS = 10_000
MOST_LIST_BYTES = 64 * MIB
MOST_LIST_SECONDS = 900.0


@dataclass(slots=True, kw_only=True)
class ListBudget:
    """What one list may have on all its pages together. What comes after that is unknown, never absent."""

    began: float
    pages: int = 0
    rows: int = 0
    read_bytes: int = 0

    def add(self, *, rows: int, read_bytes: int) -> None:
        self.pages += 1
        self.rows += rows
        self.read_bytes += read_bytes

    def is_spent(self, now: float) -> bool:
        return (
            self.pages >= MOST_PAGES
            or self.rows >= MOST_ROWS
            or self.read_bytes >= MOST_LIST_BYTES
            or now - self.began >= MOST_LIST_SECONDS
        )
