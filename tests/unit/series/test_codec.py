"""Tables as bytes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.series.codec import NotATable, decode, encode, encode_quickly
from stationmaster.series.schema import TABLES, Kind, required_columns
from stationmaster.series.table import Table, table_of

_WHOLE = 2**53
_VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.REAL: st.floats(allow_nan=False, allow_infinity=False),
    Kind.INTEGER: st.integers(-_WHOLE, _WHOLE),
    Kind.TEXT: st.text(max_size=30).filter(lambda text: "\0" not in text),
}


@st.composite
def tables(draw: st.DrawFn) -> Table:
    name = draw(st.sampled_from(sorted(TABLES)))
    rows = draw(st.integers(1, 20))
    needed = required_columns(name)
    columns = {
        column: draw(
            st.lists(_VALUES[kind] if column in needed else st.none() | _VALUES[kind], min_size=rows, max_size=rows)
        )
        for column, kind in TABLES[name].items()
        if column in needed or draw(st.booleans())
    }
    return table_of(name, columns)


either_way = st.sampled_from([encode, encode_quickly])


@given(tables(), either_way)
def test_a_table_survives_the_way_to_bytes_and_back(table: Table, to_bytes: Callable[[Table], bytes]) -> None:
    assert decode(table.name, to_bytes(table)) == table


@given(tables(), either_way, st.data())
def test_only_the_wanted_columns_are_decoded(
    table: Table, to_bytes: Callable[[Table], bytes], data: st.DataObject
) -> None:
    wanted = data.draw(st.sets(st.sampled_from(sorted(table.columns)), min_size=1))
    part = decode(table.name, to_bytes(table), wanted)
    assert set(part.columns) == wanted
    assert all(part.values(column) == table.values(column) for column in wanted)


@given(st.binary(max_size=200))
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(NotATable):
        decode("StepMetric", data)


@given(tables(), either_way, st.data())
def test_changed_bytes_are_refused_or_give_a_table_of_equal_columns(
    table: Table, to_bytes: Callable[[Table], bytes], data: st.DataObject
) -> None:
    good = to_bytes(table)
    place = data.draw(st.integers(0, len(good) - 1))
    bad = good[:place] + bytes([data.draw(st.integers(0, 255))]) + good[place + 1 :]
    try:
        found = decode(table.name, bad)
    except NotATable:
        return
    assert len({len(values) for values in found.as_lists().values()}) <= 1


def test_bytes_that_would_grow_without_limit_are_refused() -> None:
    column = zlib.compress(bytes(50_000_000))
    header = json.dumps({"rows": 3, "columns": [["loss", len(column)]]}).encode()
    with pytest.raises(NotATable, match="another length"):
        decode("StepMetric", b"\x01" + len(header).to_bytes(4, "little") + header + column)


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(NotATable, match="format 3"):
        decode("StepMetric", b"\x03" + bytes(20))


def test_columns_of_a_later_version_are_ignored() -> None:
    table = table_of("RunInfo", {"id": [1], "key": ["platform"], "value": ["discrete"]})
    later = Table("RunInfo", {**table.columns, "unit": ("none",)})
    assert decode("RunInfo", encode(later)) == table


def test_steps_take_few_bytes() -> None:
    count = 20_000
    table = table_of(
        "StepMetric",
        {"id": list(range(count)), "step": list(range(count)), "timestamp": [1.7e9 + step for step in range(count)]},
    )
    assert len(encode(table)) < 2 * count
