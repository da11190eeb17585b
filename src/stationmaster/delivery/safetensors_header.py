"""What a .safetensors file says of itself: whether it is whole, its tensors, its step, and whether any is NaN."""

from __future__ import annotations

import json
import os
import re
import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from stationmaster.errors import TransferFailed

#: What the safetensors library itself accepts.
_LARGEST_HEADER_BYTES = 100_000_000

#: Numbers are only read in files up to this size: a bigger model takes longer than the answer is worth.
READ_NUMBERS_BYTES = 32 * 2**20

_METADATA = "__metadata__"
_STEP_KEYS = ("ss_steps", "step", "steps", "global_step")

#: Bytes of one number, and the largest bit pattern without its sign that is no NaN.
_FLOATS = {
    "F64": (8, 0x7FF0_0000_0000_0000),
    "F32": (4, 0x7F80_0000),
    "F16": (2, 0x7C00),
    "BF16": (2, 0x7F80),
}
_ARRAY_CODES = {2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsFile:
    """A whole file; `has_nan` is None where the numbers were not read."""

    tensors: int
    step: int | None
    has_nan: bool | None
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Where one tensor lies, counted from the end of the header."""

    kind: str
    begin: int
    end: int


def open_safetensors(path: Path) -> SafetensorsFile:
    """The file's own account of itself. Raises TransferFailed when it is not a whole .safetensors file."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            header, data_start = _header(file, size)
            metadata = {str(name): str(value) for name, value in (header.pop(_METADATA, None) or {}).items()}
            spans = [_span(entry) for entry in header.values()]
            _require_whole(spans, size - data_start)
            has_nan = _has_nan(file, data_start, spans) if size <= READ_NUMBERS_BYTES else None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
        raise TransferFailed(f"{path.name} is not a whole .safetensors file: {problem}") from problem
    except OSError as problem:
        raise TransferFailed(f"{path} cannot be read: {problem.strerror}") from problem
    return SafetensorsFile(tensors=len(spans), step=_step(metadata), has_nan=has_nan, metadata=metadata)


def _header(file: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(_LARGEST_HEADER_BYTES, size - 8):
        raise ValueError(f"a header of {length:,} bytes does not fit into {size:,}")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no table")
    return header, 8 + length


def _span(entry: Mapping[str, Any]) -> _Span:
    begin, end = entry["data_offsets"]
    return _Span(kind=str(entry["dtype"]), begin=int(begin), end=int(end))


def _require_whole(spans: list[_Span], data_bytes: int) -> None:
    """Tensors follow each other without a gap, from the header to the last byte, as the library requires."""
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
    """The training step, from the trainers' own places for it."""
    return next((step for value in _step_values(metadata) if (step := _whole_number(value)) is not None), None)


def _step_values(metadata: Mapping[str, str]) -> Iterator[object]:
    try:
        training = json.loads(metadata.get("training_info", "{}"))
    except ValueError:
        training = {}
    for known in (training, metadata):
        if isinstance(known, Mapping):
            yield from (known[key] for key in _STEP_KEYS if key in known)


def _whole_number(value: object) -> int | None:
    return int(str(value)) if re.fullmatch(r"\d{1,15}", str(value)) else None
