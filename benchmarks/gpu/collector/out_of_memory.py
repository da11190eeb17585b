"""Fills the GPU until PyTorch runs out of memory, inside a run: `out_of_memory.py DATABASE`. Ends with an error."""

from __future__ import annotations

import sys

import torch  # type: ignore[import-not-found, unused-ignore]

from gpu.collector.small_training import SmallTraining
from trackside import Run

_BLOCK_BYTES = 1 << 30


def main(database: str) -> None:
    training, held = SmallTraining(), []
    with Run("out-of-memory", database, framework="pytorch", config={"batch_size": 8}) as run:
        for step in range(1, 6):
            run.step(step, loss=training.step(), lr=1e-4, batch_size=8)
        while True:
            held.append(torch.empty(_BLOCK_BYTES, dtype=torch.uint8, device=training.device))


if __name__ == "__main__":
    main(*sys.argv[1:])
