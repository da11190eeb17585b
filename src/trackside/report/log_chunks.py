"""Read the new bytes of a step's log since a position that home remembers."""

from __future__ import annotations

import os
from typing import Any, NamedTuple


class Position(NamedTuple):
    inode: int
    offset: int


class Chunk(NamedTuple):
    """Bytes [start, end) of a log. `restarted`: the log is not the one home was reading."""

    inode: int
    start: int
    end: int
    restarted: bool
    data: bytes
    is_last: bool  # nothing was left in the file


def read_new(path: str, position: Position | None, *, limit_bytes: int) -> Chunk | None:
    """Return what was written since `position`, at most `limit_bytes`; None when there is nothing new."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        seen = os.fstat(descriptor)
        restarted = position is not None and (seen.st_ino != position.inode or seen.st_size < position.offset)
        start = 0 if position is None or restarted else position.offset
        raw = os.pread(descriptor, min(limit_bytes, seen.st_size - start), start)
    finally:
        os.close(descriptor)
    if not raw and not restarted:
        return None
    if start + len(raw) < seen.st_size:
        from trackside.report.thinning import cut_between_pieces  # its patterns take a while: only when needed

        raw = cut_between_pieces(raw)
    end = start + len(raw)
    return Chunk(
        inode=seen.st_ino,
        start=start,
        end=end,
        restarted=restarted,
        data=raw,
        is_last=end >= seen.st_size,
    )


def parse_positions(record: Any) -> dict[str, Position]:
    """Return the positions in `--since`; an invalid one counts as unknown, which sends the log from its start."""
    positions = {}
    for stream, found in record.items() if isinstance(record, dict) else ():
        try:
            positions[stream] = Position(inode=int(found["inode"]), offset=max(0, int(found["offset"])))
        except (KeyError, TypeError, ValueError):
            continue
    return positions
