"""Weights & Biases in offline mode."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "import wandb"
_BLOCK_BYTES = 32768
_HEADER_BYTES = 7


def start(folder: str) -> tuple[Log, Finish]:
    wandb = importlib.import_module("wandb")
    run = wandb.init(project="bench", dir=folder, mode="offline", settings=wandb.Settings(silent=True))

    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        run.log({"loss": loss, "lr": lr, "grad_norm": grad_norm}, step=step)

    return log, run.finish


def stored_steps(folder: str) -> int:
    """Count with wandb's own record type; its Python package has no reader for the frames around the records."""
    record_type = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    steps = set()
    for file in Path(folder).glob("wandb/offline-run-*/*.wandb"):
        for payload in _records(file.read_bytes()):
            record = record_type.FromString(payload)
            if record.HasField("history"):
                steps.add(record.history.step.num)
    return len(steps)


def _records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a LevelDB log, which is how wandb frames its file; one that is cut off is left out."""
    position, parts = _HEADER_BYTES, b""  # the file has a header of its own, as long as a frame's
    while position + _HEADER_BYTES <= len(data):
        left_in_block = _BLOCK_BYTES - position % _BLOCK_BYTES
        if left_in_block < _HEADER_BYTES:
            position += left_in_block
            continue
        length = int.from_bytes(data[position + 4 : position + 6], "little")
        kind = data[position + 6]  # 1 whole, 2 first, 3 middle, 4 last
        start, position = position + _HEADER_BYTES, position + _HEADER_BYTES + length
        if kind == 0 or position > len(data):
            break
        parts = parts + data[start:position] if kind in (3, 4) else data[start:position]
        if kind in (1, 4):
            yield parts
