"""Checkpoints: safetensors files that are whole or not there, newest found, oldest removed."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

_LARGEST_HEADER = 100_000_000


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What a safetensors file holds."""

    path: Path
    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]

    @property
    def step(self) -> int:
        return int(json.loads(self.metadata["training_info"])["step"])


def encode(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """The bytes of a safetensors file with 32-bit floats."""
    header: dict[str, Any] = {"__metadata__": metadata}
    parts, offset = [], 0
    for name in sorted(tensors):
        part = np.ascontiguousarray(tensors[name], dtype="<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(part)],
        }
        parts.append(part)
        offset += len(part)
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def read(path: Path) -> Checkpoint:
    """The checkpoint in `path`; raises ValueError if the file is not one, OSError if it cannot be read."""
    data = path.read_bytes()
    if len(data) < 8:
        raise ValueError(f"{path} is not a safetensors file")
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(_LARGEST_HEADER, len(data) - 8):
        raise ValueError(f"{path} is not a whole safetensors file")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    return Checkpoint(path=path, tensors=dict(_tensors(header, data, 8 + length)), metadata=metadata)


def write(path: Path, content: bytes, before_rename: Callable[[], None] = lambda: None) -> None:
    """Put `content` at `path`, whole or not at all, whatever ends this process in between."""
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
    half = len(content) // 2
    with partial.open("wb") as file:
        file.write(content[:half])
        file.flush()
        before_rename()
        file.write(content[half:])
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def remove_partial(folder: Path) -> None:
    """Clear away what a killed process was writing."""
    for path in folder.glob(".*.partial"):
        path.unlink()


def numbered(folder: Path, name: str) -> list[Path]:
    """The checkpoints of `name` with a step in their name, oldest first."""
    pattern = re.compile(re.escape(name) + r"_\d{9}\.safetensors")
    return sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))


def newest(folder: Path, name: str) -> Checkpoint | None:
    """The newest numbered checkpoint that can be read."""
    for path in reversed(numbered(folder, name)):
        try:
            return read(path)
        except ValueError as error:
            print(f"Skipping {path}: {error}", flush=True)
    return None


def _tensors(header: dict[str, Any], data: bytes, start: int) -> Iterator[tuple[str, np.ndarray]]:
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] != "F32" or start + end > len(data):
            raise ValueError(f"the tensor {name} is not whole")
        values = np.frombuffer(data[start + begin : start + end], dtype="<f4")
        yield name, values.reshape(entry["shape"]).astype(np.float32)
