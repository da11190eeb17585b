"""An offline run of wandb that logs so many metrics each second, for `wandb leet` to show: METRICS SECONDS_BETWEEN."""

from __future__ import annotations

import math
import sys
import time

import wandb  # type: ignore[import-not-found, unused-ignore]  # in an environment of its own


def main() -> None:
    metrics, between = int(sys.argv[1]), float(sys.argv[2])
    run = wandb.init(project="terminal", mode="offline")
    print("logging", flush=True)
    second = 0
    while True:
        run.log({f"machine/{number}": math.sin(second / 30 + number) for number in range(metrics)})
        second += 1
        time.sleep(between)


if __name__ == "__main__":
    main()
