"""Hundreds of seeded storms against the simulator: `python -m tests.chaos.storms --runs 300 [--seed S] [--lanes N]`.

Run number n has the seed S + n, which draws its faults: every one of them comes in turn. Several storms blow side by
side, one in each lane. Ends with 1 when a promise was broken, or when a fault has not met a live rental five times.
Three minutes of partition come last, where the computer has network namespaces.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import structlog

from stationmaster.simulator.faults import FaultKind
from tests.support.chaos.simulator_storm import Storm, Tally, missing, table
from tests.support.chaos.storm_station import StormForge

_LEAST = 5
_FAULTS_PER_RUN = 3
_MOST_SECONDS = 20.0
_STORMS_PER_FORGE = 10
LANES = 6
_PARTITION_SECONDS = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one storm came to; `broken` tells the story of a promise that did not hold."""

    seed: int
    tally: Tally = field(default_factory=Counter)
    kills: Tally = field(default_factory=Counter)
    broken: str | None = None


def main() -> int:
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return blow(arguments.runs, seed=arguments.seed, lanes=arguments.lanes)


def blow(runs: int, *, seed: int, lanes: int = LANES) -> int:
    """So many storms, then the long partition; 0 when nothing broke and no fault was missing."""
    began = time.monotonic()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="storms-") as temporary:
        for result in _results(range(seed, seed + runs), lanes, Path(temporary)):
            results.append(result)
            told = "broken" if result.broken else ", ".join(sorted({kind for kind, _ in result.tally}))
            seconds = time.monotonic() - began
            print(
                f"{seconds:6.0f} s  {len(results):4d}/{runs}  storm {result.seed}: {told}", file=sys.stderr, flush=True
            )
            if result.broken:
                print(
                    f"{result.broken}\nrepeat it: python -m tests.chaos.storms --runs 1 --seed {result.seed}",
                    flush=True,
                )
    status = _verdict(results, seconds=time.monotonic() - began)
    return _long_partition() or status


def _results(seeds: range, lanes: int, folder: Path) -> Iterator[Result]:
    """The storms' results as they come."""
    context = multiprocessing.get_context("fork")
    waiting: SimpleQueue[int | None] = context.SimpleQueue()
    done: SimpleQueue[Result] = context.SimpleQueue()
    processes = [context.Process(target=_lane, args=(waiting, done, folder)) for _ in range(min(lanes, len(seeds)))]
    for process in processes:
        process.start()
    for each in (*seeds, *(None for _ in processes)):
        waiting.put(each)
    for _ in seeds:
        yield done.get()
    for process in processes:
        process.join()


def _lane(waiting: SimpleQueue[int | None], done: SimpleQueue[Result], folder: Path) -> None:
    """One storm after the other; now and then, and after a broken one, by a new forge that takes the pace anew."""
    seed = waiting.get()
    while seed is not None:
        with StormForge() as forge:
            for _ in range(_STORMS_PER_FORGE):
                result = storm_of(seed, folder / str(seed), forge)
                shutil.rmtree(folder / str(seed), ignore_errors=True)
                done.put(result)
                seed = waiting.get()
                if seed is None or result.broken:
                    break


def storm_of(seed: int, folder: Path, forge: StormForge) -> Result:
    storm = Storm(seed, folder, forge, kinds=faults_of(seed), installations=installations_of(seed))
    try:
        storm.run(jobs=len(installations_of(seed)), most_seconds=_MOST_SECONDS)
    except Exception:  # the top of a lane's loop: the others blow on, and the story is told
        return Result(seed=seed, broken=traceback.format_exc())
    return Result(seed=seed, tally=storm.tally, kills=storm.kills)


def installations_of(seed: int) -> tuple[str, ...]:
    """Every fifth storm blows over two installations at one account; the others have one each."""
    if seed % 5 == 0:
        return ("demand", "bids")
    return ("bids",) if FaultKind.OUTBID in faults_of(seed) or seed % 2 else ("demand",)


def faults_of(seed: int) -> tuple[FaultKind, ...]:
    """The faults of one run; over any few runs in a row each comes about as often as any other."""
    turn, place = divmod(seed * _FAULTS_PER_RUN, len(FaultKind))
    deck = [*_shuffled(turn), *_shuffled(turn + 1)]
    return tuple(dict.fromkeys(deck[place : place + _FAULTS_PER_RUN]))


def _shuffled(turn: int) -> Iterator[FaultKind]:
    kinds = list(FaultKind)
    yield from random.Random(turn).sample(kinds, len(kinds))


def _verdict(results: list[Result], *, seconds: float) -> int:
    """The tally, in words. Only as many runs as can show every fault often enough are asked for it."""
    tally = sum((result.tally for result in results), Counter())
    kills = sum((result.kills for result in results), Counter())
    broken = sorted(result.seed for result in results if result.broken)
    print(table(tally))
    print("\n".join(f"{role + ' SIGKILL':<22} {state} {count}" for (role, state), count in sorted(kills.items())))
    is_enough = len(results) * _FAULTS_PER_RUN >= 2 * _LEAST * len(FaultKind)
    rare = missing(tally, tuple(FaultKind), times=_LEAST) if is_enough else []
    if rare:
        print(f"struck fewer than {_LEAST} times while a rental was live: {', '.join(rare)}")
    told = f"broken with the seeds {broken}" if broken else "nothing broken"
    print(
        f"{len(results)} storms in {seconds:.0f} s, {sum(tally.values())} strikes, {sum(kills.values())} kills: {told}"
    )
    return int(bool(broken or rare))


def _long_partition() -> int:
    """A machine cut off for three real minutes in the midst of its training."""
    test = Path(__file__).resolve().parents[1] / "acceptance" / "test_partition.py"
    environ = {**os.environ, "PARTITION_SECONDS": str(_PARTITION_SECONDS)}
    command = [sys.executable, "-m", "pytest", "-q", "--timeout=1200", str(test)]
    return subprocess.run(command, env=environ, check=False).returncode


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=LANES, help="storms side by side")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
