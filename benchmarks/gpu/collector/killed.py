"""Trains and ends with SIGKILL as soon as the last step is logged: `killed.py DATABASE STEPS`."""

from __future__ import annotations

import os
import signal
import sys

from gpu.collector.small_training import SmallTraining
from trackside import Run


def main(database: str, steps: str) -> None:
    training = SmallTraining()
    run = Run("killed", database)
    for step in range(1, int(steps) + 1):
        run.step(step, loss=training.step(), lr=1e-4, batch_size=8)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
