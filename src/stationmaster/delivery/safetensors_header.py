"""Reads a .safetensors file: whether it is complete, its tensors, its step, and whether it contains NaN."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import sys
from array import array
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from stationmaster.errors import BrokenModel, TransferFailed

#: The library accepts more, but the header is untrusted: what is read here holds up everything else meanwhile. The
#: largest ones seen have some megabytes, most of it texts about the dataset, and some thousand tensors.
_LARGEST_HEADER_BYTES = 16 * 2**20
_MOST_VALUES = 1_000_000  # commas and brackets: each stands for a value that takes far more room than in the text
_MOST_DIMENSIONS = 16
_LARGEST_DIMENSION = 2**48
_LENGTH_BYTES = 8  # the size of the field with the header's length

#: Larger files are not checked for NaN: reading them takes too long.
READ_NUMBERS_BYTES = 32 * 2**20

_METADATA = "__metadata__"
_STEP_KEYS = ("ss_steps", "step", "steps", "global_step")

#: Bytes of one number, and the largest bit pattern, without the sign bit, that is not NaN.
_FLOATS = {
    "F64": (8, 0x7FF0_0000_0000_0000),
    "F32": (4, 0x7F80_0000),
    "F16": (2, 0x7C00),
    "BF16": (2, 0x7F80),
}
_ARRAY_CODES = {2: "H", 4: "I", 8: "Q"}
_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
}  # the size of unknown types cannot be checked

#: Called with (offset, number of bytes).
ReadRange = Callable[[int, int], Awaitable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsFile:
    """A complete file; `has_nan` is None if the numbers were not read."""

    tensors: int
    step: int | None
    has_nan: bool | None
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The byte range of one tensor, from the end of the header."""

    kind: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    spans: list[_Span]
    metadata: dict[str, str]
    data_start: int


def open_safetensors(path: Path) -> SafetensorsFile:
    """Read the file's header. Raises BrokenModel if it is not a complete .safetensors file."""
    try:
        with path.open("rb") as file, _reading_header(path.name):
            size = os.fstat(file.fileno()).st_size
            header = _header(file.read(_header_bytes(file.read(_LENGTH_BYTES), size)), size)
            has_nan = _has_nan(file, header.data_start, header.spans) if size <= READ_NUMBERS_BYTES else None
    except OSError as problem:
        raise TransferFailed(f"{path} cannot be read: {problem.strerror}") from problem
    return SafetensorsFile(
        tensors=len(header.spans), step=_step(header.metadata), has_nan=has_nan, metadata=header.metadata
    )


async def require_safetensors(name: str, size: int, read: ReadRange) -> None:
    """Check a remote file by its header. Raises BrokenModel if it is not a complete .safetensors file."""
    first = await read(0, _LENGTH_BYTES) if size >= _LENGTH_BYTES else b""
    with _reading_header(name):
        length = _header_bytes(first, size)
    text = await read(_LENGTH_BYTES, length)
    with _reading_header(name):
        await asyncio.to_thread(_header, text, size)


@contextmanager
def _reading_header(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as problem:
        raise BrokenModel(f"{name} is not a complete .safetensors file: {problem}") from problem


def _header_bytes(first: bytes, size: int) -> int:
    length = int.from_bytes(first, "little")
    if not 2 <= length <= min(_LARGEST_HEADER_BYTES, size - _LENGTH_BYTES):
        raise ValueError(f"a header of {length:,} bytes does not fit into {size:,}")
    return length


def _header(text: bytes, size: int) -> _Header:
    if sum(map(text.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise ValueError("its header has too many values")
    header = json.loads(text)
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    metadata = {str(name): str(value) for name, value in (header.pop(_METADATA, None) or {}).items()}
    data_start = _LENGTH_BYTES + len(text)
    spans = [_span(entry) for entry in header.values()]
    _require_whole(spans, size - data_start)
    return _Header(spans=spans, metadata=metadata, data_start=data_start)


def _span(entry: Mapping[str, Any]) -> _Span:
    begin, end = entry["data_offsets"]
    kind, shape = str(entry["dtype"]), entry["shape"]
    if len(shape) > _MOST_DIMENSIONS or not all(_is_length(length) for length in (begin, end, *shape)):
        raise ValueError("a tensor has no valid shape or place")
    if kind in _BITS and _BITS[kind] * math.prod(shape) != 8 * (end - begin):
        raise ValueError(f"a tensor of {shape} {kind} does not take {end - begin:,} bytes")
    return _Span(kind=kind, begin=begin, end=end)


def _is_length(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_DIMENSION


def _require_whole(spans: list[_Span], data_bytes: int) -> None:
    """Require tensors without gaps, from the header to the last byte, as the library does."""
    ordered = sorted(spans, key=lambda span: (span.begin, span.end))
    edges = [0, *(edge for span in ordered for edge in (span.begin, span.end)), data_bytes]
    if any(span.begin > span.end for span in ordered) or any(
        before != after for before, after in list(pairwise(edges))[::2]
    ):
        raise ValueError(f"its tensors do not fill the {data_bytes:,} bytes after the header")


def _has_nan(file: BinaryIO, data_start: int, spans: list[_Span]) -> bool:
    return any(_is_nan_in(_bytes(file, data_start, span), span.kind) for span in spans if span.kind in _FLOATS)


def _bytes(file: BinaryIO, data_start: int, span: _Span) -> bytes:
    file.seek(data_start + span.begin)
    return file.read(span.end - span.begin)


def _is_nan_in(data: bytes, kind: str) -> bool:
    width, infinity = _FLOATS[kind]
    numbers = array(_ARRAY_CODES[width], data)
    if sys.byteorder == "big":
        numbers.byteswap()
    unsigned = (1 << (8 * width - 1)) - 1
    return any(number & unsigned > infinity for number in numbers)


def _step(metadata: Mapping[str, str]) -> int | None:
    """The training step, from the metadata keys that trainers use."""
    return next((step for value in _step_values(metadata) if (step := _whole_number(value)) is not None), None)


def _step_values(metadata: Mapping[str, str]) -> Iterator[object]:
    try:
        training = json.loads(metadata.get("training_info", "{}"))
    except (ValueError, RecursionError):
        training = {}
    for known in (training, metadata):
        if isinstance(known, Mapping):
            yield from (known[key] for key in _STEP_KEYS if key in known)


def _whole_number(value: object) -> int | None:
    return int(str(value)) if re.fullmatch(r"\d{1,15}", str(value)) else None
