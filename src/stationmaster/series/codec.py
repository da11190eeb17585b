"""A table as bytes. A few of its columns can be read without the others: a chart needs only those it draws.

    data = encode(table)
    decode("StepMetric", data, columns=("step", "loss"))

Layout: a format byte, the length of the header (4 bytes), the header (JSON: row count, and the name and length of each
column), the columns. Numbers are 8 bytes, little endian; texts are JSON.

Format 1, for storing: each column is compressed, with the first bytes of all its numbers together, then the second
bytes, and so on: bytes that hardly change compress well. Format 2, for rows that arrive a few at a time and are merged
with others later: the columns as they are, which takes a fraction of the time.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Collection, Mapping
from typing import Any

from stationmaster.series.schema import TABLES, Kind
from stationmaster.series.table import Column, Table

_STORED, _QUICK = 1, 2
_MOST_ROWS = 1 << 24
_WIDTH = 8
# Made once: `json.dumps` makes a new encoder for each call that does not use its default separators.
_to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class NotATable(ValueError):
    """These bytes are not a table."""


def encode(table: Table) -> bytes:
    """Return the table as few bytes."""
    parts = {name: zlib.compress(_shuffled(held)) for name, held in table.columns.items()}
    return _with_header(_STORED, table, parts)


def encode_quickly(table: Table) -> bytes:
    """Return the table as bytes in little time, for a few rows."""
    parts = {name: _raw(held) for name, held in table.columns.items()}
    return _with_header(_QUICK, table, parts)


def decode(name: str, data: bytes, columns: Collection[str] | None = None) -> Table:
    """Return the table in the bytes, or only some of its columns. Raises NotATable.

    Columns that this version does not know are ignored.
    """
    try:
        return _decode(name, memoryview(data), columns)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, RecursionError, zlib.error) as problem:
        raise NotATable(f"not a table: {problem}") from problem


def _decode(name: str, data: memoryview, wanted: Collection[str] | None) -> Table:
    kind = data[0]
    if kind not in (_STORED, _QUICK):
        raise ValueError(f"unknown format {kind}")
    begin = 5 + int.from_bytes(data[1:5], "little")
    header = json.loads(bytes(data[5:begin]))
    rows, sizes = header["rows"], header["columns"]
    if not _is_count(rows) or rows > _MOST_ROWS or not all(_is_count(size) for _, size in sizes):
        raise ValueError("impossible lengths")
    held: dict[str, Column] = {}
    for column, size in sizes:
        part = data[begin : begin + size]
        begin += size
        if column in TABLES[name] and (wanted is None or column in wanted):
            held[column] = _column(TABLES[name][column], part, rows, is_stored=kind == _STORED)
    return Table(name, held)


def _with_header(kind: int, table: Table, parts: Mapping[str, bytes]) -> bytes:
    columns = [[name, len(part)] for name, part in parts.items()]
    header = _to_json({"rows": len(table), "columns": columns}).encode()
    return b"".join((bytes([kind]), len(header).to_bytes(4, "little"), header, *parts.values()))


def _raw(held: Column) -> bytes:
    return _to_json(held).encode() if isinstance(held, tuple) else _swapped(held).tobytes()


def _shuffled(held: Column) -> bytes:
    raw = _raw(held)
    return raw if isinstance(held, tuple) else b"".join(raw[byte::_WIDTH] for byte in range(_WIDTH))


def _column(kind: Kind, part: memoryview, rows: int, *, is_stored: bool) -> Column:
    if kind is Kind.TEXT:
        return _texts(zlib.decompress(part) if is_stored else bytes(part), rows)
    raw = _unshuffled(_decompressed(part, rows * _WIDTH), rows) if is_stored else part
    held: array[Any] = array("d" if kind is Kind.REAL else "q")
    held.frombytes(raw)
    if len(held) != rows:
        raise ValueError("a column has another length than its table")
    return _swapped(held)


def _unshuffled(shuffled: bytes, rows: int) -> bytearray:
    raw = bytearray(len(shuffled))
    for byte in range(_WIDTH):
        raw[byte::_WIDTH] = shuffled[byte * rows : (byte + 1) * rows]
    return raw


def _texts(data: bytes, rows: int) -> tuple[str | None, ...]:
    values = json.loads(data)
    if not isinstance(values, list) or len(values) != rows:
        raise ValueError("a column has another length than its table")
    return tuple(value if isinstance(value, str) else None for value in values)


def _decompressed(data: memoryview, size: int) -> bytes:
    """Decompress exactly `size` bytes: damaged data must not grow without limit. Raises ValueError."""
    found = zlib.decompressobj().decompress(data, size + 1)
    if len(found) != size:
        raise ValueError("a column has another length than its table")
    return found


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _swapped(values: array[Any]) -> array[Any]:
    """Return the numbers in the order of bytes that is stored, or from it: both are little endian."""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values
