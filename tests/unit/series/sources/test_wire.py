"""The wire format: whatever the bytes, either fields or BrokenMessage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.series.sources.tensorboard import read_events
from stationmaster.series.sources.wandb import MARK, read_wandb
from stationmaster.series.sources.wire import BrokenMessage, fields, packed_varints


@pytest.mark.parametrize("message", ["08", "1205616263", "0b", "0d0000", "09", "08" + "ff" * 11])
def test_a_broken_message_is_refused(message: str) -> None:
    with pytest.raises(BrokenMessage):
        list(fields(bytes.fromhex(message)))


@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_refused(data: bytes) -> None:
    try:
        assert all(number >= 0 for number, _ in fields(data))
        list(packed_varints(data))
    except BrokenMessage:
        pass


@given(st.binary(max_size=200))
def test_no_file_breaks_a_source(data: bytes) -> None:
    assert isinstance(read_events(data).scalars, list)
    assert isinstance(read_wandb(MARK + data).scalars, list)
