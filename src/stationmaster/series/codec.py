"""A table as bytes. Each column is compressed separately, so that a chart reads only the columns it draws.

    data = encode(table)
    decode("StepMetric", data, columns=("step", "loss"))

Layout: a format byte, the length of the header (4 bytes), the header (JSON: row count, and the name, kind and length of
each column), the columns. Numbers are 8 bytes, little endian, with the first bytes of all values together, then the
second bytes, and so on: bytes that hardly change compress well. Texts are JSON.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Collection
from typing import Any

from stationmaster.series.schema import TABLES, Kind
from stationmaster.series.table import Column, Table

_FORMAT = 1
_MOST_ROWS = 1 << 24
_WIDTH = 8
_LEVEL = 6


class NotATable(ValueError):
    """These bytes are not a table."""


def encode(table: Table, *, level: int = _LEVEL) -> bytes:
    """Return the table as bytes."""
    parts = [(name, zlib.compress(_packed(held), level)) for name, held in table.columns.items()]
    columns = [[name, len(data)] for name, data in parts]
    header = json.dumps({"rows": len(table), "columns": columns}, separators=(",", ":")).encode()
    return b"".join((bytes([_FORMAT]), len(header).to_bytes(4, "little"), header, *(data for _, data in parts)))


def decode(name: str, data: bytes, columns: Collection[str] | None = None) -> Table:
    """Return the table in the bytes, or only some of its columns. Raises NotATable.

    Columns that this version does not know are ignored.
    """
    try:
        return _decode(name, memoryview(data), columns)
    except (KeyError, ValueError, TypeError, IndexError, RecursionError, zlib.error) as problem:
        raise NotATable(f"not a table of the format {_FORMAT}: {problem}") from problem


def _decode(name: str, data: memoryview, wanted: Collection[str] | None) -> Table:
    if data[0] != _FORMAT:
        raise ValueError(f"format {data[0]}")
    place = 5 + int.from_bytes(data[1:5], "little")
    header = json.loads(bytes(data[5:place]))
    rows = header["rows"]
    if type(rows) is not int or not 0 <= rows <= _MOST_ROWS:
        raise ValueError("impossible number of rows")
    held: dict[str, Column] = {}
    for column, size in header["columns"]:
        if type(size) is not int or size < 0 or place + size > len(data):
            raise ValueError("a column is cut off")
        kind = TABLES[name].get(column)
        if kind is not None and (wanted is None or column in wanted):
            held[column] = _unpacked(kind, data[place : place + size], rows)
        place += size
    return Table(name, held)


def _packed(held: Column) -> bytes:
    if isinstance(held, tuple):
        return json.dumps(held, separators=(",", ":")).encode()
    raw = _little_endian(held).tobytes()
    return b"".join(raw[byte::_WIDTH] for byte in range(_WIDTH))


def _unpacked(kind: Kind, data: memoryview, rows: int) -> Column:
    if kind is Kind.TEXT:
        return _texts(data, rows)
    size = rows * _WIDTH
    reader = zlib.decompressobj()
    shuffled = reader.decompress(data, size + 1)
    if len(shuffled) != size:
        raise ValueError("a column has another length than its table")
    raw = bytearray(size)
    for byte in range(_WIDTH):
        raw[byte::_WIDTH] = shuffled[byte * rows : (byte + 1) * rows]
    held: array[Any] = array("d" if kind is Kind.REAL else "q")
    held.frombytes(raw)
    return _little_endian(held)


def _texts(data: memoryview, rows: int) -> tuple[str | None, ...]:
    values = json.loads(zlib.decompress(data))
    if not isinstance(values, list) or len(values) != rows:
        raise ValueError("a column has another length than its table")
    return tuple(value if isinstance(value, str) else None for value in values)


def _little_endian(values: array[Any]) -> array[Any]:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values
