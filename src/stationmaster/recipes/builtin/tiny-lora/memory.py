"""Memory that is really in use: the weights of a larger base model, and what a step keeps of each of its pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_VALUES_PER_MB = (1 << 20) // 4


def filled(megabytes: float) -> np.ndarray:
    """Values that fill this much memory, every page of it written: memory that is only reserved costs nothing."""
    return np.full(int(megabytes * _VALUES_PER_MB), 0.5, dtype=np.float32)


@contextmanager
def activations(pictures: int, megabytes_each: float) -> Iterator[None]:
    """Keep this much for each picture, as backpropagation does, until the step is over."""
    kept = [filled(megabytes_each) for _ in range(pictures)] if megabytes_each else []
    yield
    kept.clear()
