"""Blocks: rows of one table as the store holds them, and which small ones are merged.

block = block_of(table, attempt=1)
block.table(columns=("step", "loss"))
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stationmaster.series.codec import decode, encode, encode_quickly
from stationmaster.series.table import Table, joined

MOST_ROWS = 65_536
_FEW_VALUES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows that arrived together. `first_at` and `last_at`: their earliest and latest time; RunInfo has none."""

    attempt: int
    name: str
    first_id: int
    last_id: int
    first_at: float | None
    last_at: float | None
    row_count: int
    data: bytes

    def table(self, columns: Collection[str] | None = None) -> Table:
        """Return the rows, or only some of their columns. Raises NotATable."""
        return decode(self.name, self.data, columns)


def block_of(table: Table, *, attempt: int) -> Block:
    """Return the block of rows that just arrived; there is at least one. Merging packs them better."""
    is_short = len(table) * len(table.columns) <= _FEW_VALUES
    return _block(table, encode_quickly(table) if is_short else encode(table), attempt=attempt)


def merged(blocks: Sequence[Block]) -> Block:
    """Return the rows of several blocks of the same attempt and table as one. Raises NotATable."""
    return replaced(blocks, joined([block.table() for block in blocks]))


def replaced(blocks: Sequence[Block], table: Table) -> Block:
    """Return one block with the rows that replace those of `blocks`."""
    return _block(table, encode(table), attempt=blocks[0].attempt)


def runs_to_merge(row_counts: Sequence[int], *, is_complete: bool) -> list[range]:
    """Return the runs of neighbouring blocks that become one block each, at most `MOST_ROWS` rows long.

    While more rows arrive, a block is merged only with blocks that together are at least half as long, so that each row
    is rewritten a few times, not at every merge. With `is_complete` as few blocks as possible remain.
    """
    runs: list[range] = []
    end = len(row_counts)
    while end > 0:
        start, rows = end - 1, row_counts[end - 1]
        while start > 0 and rows + row_counts[start - 1] <= MOST_ROWS:
            if not is_complete and row_counts[start - 1] > 2 * rows:
                break
            start -= 1
            rows += row_counts[start]
        if end - start > 1:
            runs.append(range(start, end))
        end = start
    return runs[::-1]


def _block(table: Table, data: bytes, *, attempt: int) -> Block:
    ids, times = table.numbers("id"), table.numbers("timestamp") if "timestamp" in table.columns else ()
    return Block(
        attempt=attempt,
        name=table.name,
        first_id=int(min(ids)),
        last_id=int(max(ids)),
        first_at=min(times, default=None),
        last_at=max(times, default=None),
        row_count=len(table),
        data=data,
    )
