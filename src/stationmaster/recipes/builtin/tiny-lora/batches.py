"""The batches of pictures that a training takes, and those that it prepares in its own process."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from dataset import Dataset


class Batches(Protocol):
    """Where the pictures of a step come from."""

    def batch(self, step: int) -> tuple[np.ndarray, np.ndarray]: ...

    def close(self) -> None: ...


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which batches a run needs; the same ones, whoever prepares them."""

    size: int
    seed: int
    steps: int


@dataclasses.dataclass(frozen=True)
class OwnBatches:
    """Prepared in the training's own process."""

    dataset: Dataset
    wanted: Wanted

    def batch(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        return self.dataset.batch(self.wanted.size, self.wanted.seed, step)

    def close(self) -> None:
        """Nothing is open."""
