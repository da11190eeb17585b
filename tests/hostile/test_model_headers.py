"""The header of a model is written by a stranger: reading it is bounded, and never on the loop that others wait for."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.delivery.safetensors_header import open_safetensors, require_safetensors
from stationmaster.errors import BrokenModel
from tests.support.asynchronous_tests import asynchronous

MIB = 2**20


def model(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def tensor(shape: list[Any], begin: Any, end: Any) -> bytes:
    return json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}}).encode()


HOSTILE = {
    "a header of 20 MB": model(b'{"__metadata__": {"a": "' + b"x" * 20_000_000 + b'"}}'),
    "a million empty tensors": model(b'{"a":[' + b"{}," * 1_000_000 + b"{}]}"),
    "deep nesting": model(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "a length of 2**63": struct.pack("<Q", 2**63) + b"{}",
    "a shape of huge numbers": model(tensor([10**400] * 16, 0, 4), b"1234"),
    "a shape of 100,000 dimensions": model(tensor([1] * 100_000, 0, 4), b"1234"),
    "a negative place": model(tensor([1], -4, 0), b"1234"),
    "a place that is no number": model(tensor([1], "0", True), b"1234"),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
@asynchronous
async def test_a_hostile_header_is_a_broken_model_here_and_on_the_machine(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(BrokenModel):
        await asyncio.to_thread(open_safetensors, path)

    async def read(offset: int, count: int) -> bytes:
        return content[offset : offset + count]

    with pytest.raises(BrokenModel):
        await require_safetensors("model.safetensors", len(content), read)


def test_a_training_info_that_is_nested_without_end_has_no_step(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"training_info": "[" * 100_000},
        "w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]},
    }
    path = tmp_path / "model.safetensors"
    path.write_bytes(model(json.dumps(header).encode()))
    assert open_safetensors(path).step is None


@asynchronous
async def test_a_header_on_a_machine_is_parsed_beside_the_loop() -> None:
    """The loop's own thread parses nothing: a header that knows in which thread it was counted shows it."""
    threads: list[int] = []

    class Counted(bytes):
        def count(self, *args: Any) -> int:
            threads.append(threading.get_ident())
            return super().count(*args)

    content = model(tensor([1], 0, 4), b"1234")

    async def read(offset: int, count: int) -> bytes:
        return Counted(content[offset : offset + count])

    await require_safetensors("model.safetensors", len(content), read)
    assert threads
    assert threading.get_ident() not in threads


@given(header=st.binary(max_size=300) | st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["w", "dtype", "shape", "data_offsets", "__metadata__"]), inner, max_size=4),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode()), data=st.binary(max_size=16))  # fmt: skip
def test_any_header_opens_or_is_broken(tmp_path_factory: pytest.TempPathFactory, header: bytes, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(model(header, data))
    try:
        open_safetensors(path)
    except BrokenModel:
        pass  # as most are
