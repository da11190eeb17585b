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
    folder = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    descriptor, path = tempfile.mkstemp(prefix="tiny-lora-", dir=folder)
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
    drop(parcel)
    pictures, captions = np.split(values, [int(np.prod(parcel.pictures))])
    return pictures.reshape(parcel.pictures), captions.reshape(parcel.captions)


def drop(parcel: Parcel) -> None:
    """Free the shared memory of a batch that nothing will use."""
    Path(parcel.path).unlink(missing_ok=True)
