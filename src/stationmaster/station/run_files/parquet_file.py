"""Writes a table as Parquet; pyarrow is an extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stationmaster.errors import UserError
from stationmaster.files import write_atomically
from stationmaster.series.schema import Kind


def write_parquet(path: Path, kinds: Mapping[str, Kind] | None, columns: Mapping[str, Sequence[Any]]) -> int:
    """Write the columns and return the number of rows; `kinds` are those of one table, None those of the long form.

    Raises UserError if pyarrow is not installed.
    """
    try:
        import pyarrow  # an extra that only this format needs
        import pyarrow.parquet
    except ImportError as problem:
        raise UserError(
            "Parquet needs the package pyarrow", hint="pip install 'stationmaster[parquet]', or export .csv"
        ) from problem
    types = {Kind.REAL: pyarrow.float64(), Kind.INTEGER: pyarrow.int64(), Kind.TEXT: pyarrow.string()}
    held = _LONG_KINDS if kinds is None else kinds
    fields = [pyarrow.field(name, types[held[name]]) for name in columns]
    table = pyarrow.table(dict(columns), schema=pyarrow.schema(fields))
    content = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, content, compression="zstd")
    write_atomically(path, content.getvalue().to_pybytes())
    return int(table.num_rows)


_LONG_KINDS = {
    "table": Kind.TEXT,
    "name": Kind.TEXT,
    "step": Kind.INTEGER,
    "timestamp": Kind.REAL,
    "value": Kind.REAL,
}
