"""A model file is opened before it counts: whole or not, how many tensors, which step, any NaN."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stationmaster.delivery.safetensors_header import READ_NUMBERS_BYTES, open_safetensors
from stationmaster.errors import TransferFailed

KINDS = {"F64": "<d", "F32": "<f", "F16": "<e"}
WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


def encoded(tensors: dict[str, tuple[str, bytes]], metadata: dict[str, str] | None = None, *, gap: int = 0) -> bytes:
    header: dict[str, object] = {} if metadata is None else {"__metadata__": metadata}
    body = b""
    for name, (kind, data) in tensors.items():
        shape = [len(data) // WIDTHS.get(kind, 1)]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * gap + body


def written(folder: Path, data: bytes) -> Path:
    path = folder / "model.safetensors"
    path.write_bytes(data)
    return path


def test_a_whole_file_tells_its_tensors_and_its_step(tmp_path: Path) -> None:
    data = encoded(
        {"a": ("F32", struct.pack("<2f", 1.0, 2.0)), "b": ("I8", b"\xff")},
        {"training_info": json.dumps({"step": 1200, "epoch": 3})},
    )
    opened = open_safetensors(written(tmp_path, data))
    assert (opened.tensors, opened.step, opened.has_nan) == (2, 1200, False)


@pytest.mark.parametrize(
    ("metadata", "step"),
    [
        ({"ss_steps": "900"}, 900),
        ({"step": "7"}, 7),
        ({"training_info": "no json", "ss_steps": "3"}, 3),
        ({"training_info": '{"step": "soon"}'}, None),
        ({"training_info": "[1]"}, None),
        (None, None),
    ],
)
def test_the_step_is_found_where_each_trainer_puts_it(
    tmp_path: Path, metadata: dict[str, str] | None, step: int | None
) -> None:
    assert open_safetensors(written(tmp_path, encoded({"a": ("F32", b"\0" * 4)}, metadata))).step == step


@pytest.mark.parametrize("kind", KINDS)
def test_a_nan_is_noticed_and_an_infinity_is_none(tmp_path: Path, kind: str) -> None:
    for value, expected in ((float("nan"), True), (float("inf"), False), (-1.5, False)):
        number = struct.pack(KINDS[kind], value)
        assert open_safetensors(written(tmp_path, encoded({"a": (kind, number)}))).has_nan is expected
    negative = bytearray(struct.pack(KINDS[kind], float("nan")))
    negative[-1] |= 0x80
    assert open_safetensors(written(tmp_path, encoded({"a": (kind, bytes(negative))}))).has_nan is True


def test_a_bfloat_nan_is_noticed(tmp_path: Path) -> None:
    assert open_safetensors(written(tmp_path, encoded({"a": ("BF16", b"\xc0\x7f")}))).has_nan is True
    assert open_safetensors(written(tmp_path, encoded({"a": ("BF16", b"\x80\x7f")}))).has_nan is False


def test_the_numbers_of_a_big_file_are_not_read(tmp_path: Path) -> None:
    data = encoded({"a": ("U8", b"\0" * READ_NUMBERS_BYTES)})
    assert open_safetensors(written(tmp_path, data)).has_nan is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(cut=st.integers(min_value=0))
def test_a_file_cut_off_anywhere_is_not_whole(tmp_path: Path, cut: int) -> None:
    data = encoded({"a": ("F32", b"\0" * 64), "b": ("F32", b"\0" * 64)}, {"step": "1"})
    with pytest.raises(TransferFailed, match="not a complete"):
        open_safetensors(written(tmp_path, data[: cut % len(data)]))


@pytest.mark.parametrize("data", [b"", b"\xff" * 64, struct.pack("<Q", 2) + b"[]", encoded({"a": ("F32", b"")}, gap=4)])
def test_what_is_no_model_is_said_to_be_none(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TransferFailed, match="not a complete"):
        open_safetensors(written(tmp_path, data))


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TransferFailed, match="cannot be read"):
        open_safetensors(tmp_path / "missing.safetensors")
