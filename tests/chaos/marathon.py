"""Hundreds of seeded crashes: `python -m tests.chaos.marathon --runs 500 [--seed S]`.

Run number n has the seed S + n, and its seed says all there is about it: repeat one with `--runs 1 --seed THAT`.
Every fourth is a real training on this computer; the others happen in memory. Storms against the simulator follow.
Ends with 1 at the first broken promise.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import structlog

from stationmaster.model import DatasetRef, State
from stationmaster.providers.fake import Trouble
from stationmaster.remote.fake import ConnectionFault
from tests.chaos.storms import LANES, blow
from tests.support.chaos.fake import JOB, FakeStation, Template
from tests.support.chaos.loopback import STATES, LoopbackStation, WorkerForge
from tests.support.chaos.points import Killed, KillPoints
from tests.support.chaos.specs import a_picture_dataset

TROUBLES = (
    Trouble.LOSE_CREATE_ANSWER,
    Trouble.LOSE_CREATE_REQUEST,
    Trouble.REFUSE_CREATE,
    Trouble.BUSY,
    Trouble.FAIL_LISTING,
    Trouble.FAIL_DESCRIBE,
    Trouble.LIST_PARTIALLY,
    Trouble.LIST_EMPTY,
    Trouble.IGNORE_DESTROY,
    Trouble.FAIL_DESTROY,
)
FAULTS = (ConnectionFault.REFUSED, ConnectionFault.CUT_BEFORE, ConnectionFault.CUT_AFTER)
_ABOUT_ALL_POINTS = 170
_REAL_ONE_IN = 4

Tally = Counter[tuple[str, str]]


def main() -> int:
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    tally: Tally = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="marathon-") as temporary, WorkerForge() as forge:
        folder = Path(temporary)
        (folder / "template").mkdir()
        template, dataset = Template(folder / "template"), a_picture_dataset(folder / "dataset")
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            print(f"{time.monotonic() - began:6.0f} s  seed {seed}", file=sys.stderr, flush=True)
            try:
                _run(seed, folder / str(seed), template, dataset, forge, tally)
            except (AssertionError, Killed):
                traceback.print_exc()
                print(f"broken with seed {seed}; repeat it with --runs 1 --seed {seed} --storms 0")
                return 1
    _print_tally(tally, arguments.runs, time.monotonic() - began)
    storms = arguments.runs * 3 // 5 if arguments.storms is None else arguments.storms
    return blow(storms, seed=arguments.seed, lanes=arguments.lanes) if storms else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storms", type=int, help="storms against the simulator afterwards; three for five runs")
    parser.add_argument("--lanes", type=int, default=LANES, help="storms side by side")
    return parser.parse_args()


def _run(seed: int, folder: Path, template: Template, dataset: DatasetRef, forge: WorkerForge, tally: Tally) -> None:
    if seed % _REAL_ONE_IN == 0:
        real_run(random.Random(seed), folder, dataset, forge, tally)
    else:
        run_in_memory(random.Random(seed), FakeStation(template, folder), tally)


def run_in_memory(randomness: random.Random, station: FakeStation, tally: Tally) -> None:
    """Some troubles of the provider and the line, and up to four workers that die or sleep at drawn points."""
    tally["run in memory", ""] += 1
    for trouble in randomness.sample(TROUBLES, randomness.randint(0, 3)):
        station.provider.will(trouble)
        tally["provider", trouble.value] += 1
    station.remote_faults = tuple(randomness.choices(FAULTS, k=randomness.randint(0, 2)))
    for _ in range(randomness.randint(1, 4)):
        at = randomness.randrange(_ABOUT_ALL_POINTS)
        if randomness.random() < 0.25:
            tally["worker asleep", _state(station)] += 1
            station.sleep_while_another_works(at)
        else:
            _kill(station, at, tally)
    station.work(KillPoints())
    station.check()


def _kill(station: FakeStation, at: int, tally: Tally) -> None:
    try:
        station.work(KillPoints(kill_at=at))
    except Killed:
        tally["worker killed", _state(station)] += 1
        station.let_leases_lapse()


def _state(station: FakeStation) -> str:
    with station.store() as store:
        return store.jobs.get(JOB).state.value


def real_run(randomness: random.Random, folder: Path, dataset: DatasetRef, forge: WorkerForge, tally: Tally) -> None:
    """A training with real processes; its workers are killed in some states, its helpers perhaps as well."""
    tally["run with processes", ""] += 1
    station = LoopbackStation(folder, dataset, forge)
    try:
        chosen = sorted(randomness.sample(STATES, randomness.randint(1, 3)), key=STATES.index)
        for state in chosen:
            if state is State.EXECUTING:
                station.kill_helpers(randomness)
            station.kill_worker_in(state, randomness)
        station.finish()
        station.check()
        tally.update({(f"{kind} SIGKILL", state): n for (kind, state), n in station.kills.items()})
    finally:
        station.close()


def _print_tally(tally: Tally, runs: int, seconds: float) -> None:
    for (kind, state), count in sorted(tally.items()):
        print(f"{count:6d}  {kind:24} {state}")
    print(f"{runs} runs in {seconds:.0f} s, nothing broken")


if __name__ == "__main__":
    sys.exit(main())
