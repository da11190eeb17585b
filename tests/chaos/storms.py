"""Hundreds of seeded storms against the simulator: `python -m tests.chaos.storms --runs 300 [--seed S]`.

Run number n has the seed S + n, which draws its faults: every one of them comes in turn. Ends with 1 at the first
broken promise, or when a fault has not met a live rental five times. Three minutes of partition come last.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import structlog

from simulator_storm import Storm, Tally, missing, table
from stationmaster.simulator.faults import FaultKind
from storm_station import StormForge

_LEAST = 5
_FAULTS_PER_RUN = 3
_MOST_SECONDS = 20.0


def main() -> int:
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return blow(arguments.runs, seed=arguments.seed)


def blow(runs: int, *, seed: int) -> int:
    """So many storms, then the long partition; 0 when nothing broke and no fault was missing."""
    tally: Tally = Counter()
    kills: Tally = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="storms-") as temporary, StormForge() as forge:
        for each in range(seed, seed + runs):
            print(f"{time.monotonic() - began:6.0f} s  storm {each}", file=sys.stderr, flush=True)
            storm = Storm(each, Path(temporary, str(each)), forge, kinds=faults_of(each))
            try:
                storm.run(jobs=2, most_seconds=_MOST_SECONDS)
            except AssertionError:
                traceback.print_exc()
                print(f"broken with seed {each}; repeat it: python -m tests.chaos.storms --runs 1 --seed {each}")
                return 1
            tally += storm.tally
            kills += storm.kills
    print(table(tally))
    print("\n".join(f"{count:6d}  {role} SIGKILL in {state}" for (role, state), count in sorted(kills.items())))
    print(f"{runs} storms in {time.monotonic() - began:.0f} s, nothing broken")
    return _verdict(tally, runs) or _long_partition()


def _long_partition() -> int:
    """A machine cut off for three real minutes in the midst of its training."""
    test = Path(__file__).resolve().parents[1] / "acceptance" / "test_partition.py"
    environ = {**os.environ, "PARTITION_SECONDS": "180"}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", str(test)], env=environ, check=False).returncode


def faults_of(seed: int) -> tuple[FaultKind, ...]:
    """The faults of one run; over any few runs in a row each comes about as often as any other."""
    turn, place = divmod(seed * _FAULTS_PER_RUN, len(FaultKind))
    deck = [*_shuffled(turn), *_shuffled(turn + 1)]
    return tuple(dict.fromkeys(deck[place : place + _FAULTS_PER_RUN]))


def _shuffled(turn: int) -> Iterator[FaultKind]:
    kinds = list(FaultKind)
    yield from random.Random(turn).sample(kinds, len(kinds))


def _verdict(tally: Tally, runs: int) -> int:
    """Only as many runs as can show every fault often enough are asked for it."""
    if runs * _FAULTS_PER_RUN < 2 * _LEAST * len(FaultKind):
        return 0
    rare = missing(tally, tuple(FaultKind), times=_LEAST)
    if rare:
        print(f"struck fewer than {_LEAST} times: {', '.join(rare)}")
    return int(bool(rare))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
