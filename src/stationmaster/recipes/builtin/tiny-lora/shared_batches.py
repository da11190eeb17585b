"""Arrays handed from one process to another through shared memory, which a container may have little of."""

from __future__ import annotations

import dataclasses
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np

_SHARED_MEMORY = Path("/dev/shm")


@dataclasses.dataclass(frozen=True)
class Parcel:
    """Two arrays in one file of shared memory: the pictures of a batch, and their captions."""

    path: str
    pictures: tuple[int, ...]
    captions: tuple[int, ...]


def put(pictures: np.ndarray, captions: np.ndarray) -> Parcel:
    """Write both arrays; where shared memory is full the kernel ends this process by SIGBUS."""
    descriptor, path = tempfile.mkstemp(prefix=_prefix(os.getpid()), dir=_folder())
    try:
        size = pictures.nbytes + captions.nbytes
        os.ftruncate(descriptor, size)
        with mmap.mmap(descriptor, size) as memory:
            memory[: pictures.nbytes] = pictures.tobytes()
            memory[pictures.nbytes :] = captions.tobytes()
    finally:
        os.close(descriptor)
    return Parcel(path=path, pictures=pictures.shape, captions=captions.shape)


def take(parcel: Parcel) -> tuple[np.ndarray, np.ndarray]:
    """Read both arrays and free their shared memory."""
    values = np.fromfile(parcel.path, dtype=np.float32)
    Path(parcel.path).unlink()
    pictures, captions = np.split(values, [int(np.prod(parcel.pictures))])
    return pictures.reshape(parcel.pictures), captions.reshape(parcel.captions)


def clear(pid: int) -> None:
    """Free the shared memory of all batches of a process that nothing will use."""
    for path in _folder().glob(_prefix(pid) + "*"):
        path.unlink(missing_ok=True)


def _folder() -> Path:
    return _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def _prefix(pid: int) -> str:
    return f"tiny-lora-{pid}-"
