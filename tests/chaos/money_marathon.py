"""Seeded crashes of workers whose jobs are paid for: `python -m tests.chaos.money_marathon --runs 200`.

Each run is one job that completes, crashes, is cancelled, loses its machine or gets none, with workers that die at
random points until one of them comes through. Afterwards the ledger must be sound and the charge right to the
micro-dollar.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import structlog

from stationmaster.control.billing.charges import charge
from stationmaster.model import Desired, EntryKind, Job, Reason
from stationmaster.money import MicroDollars
from stationmaster.providers.fake import Trouble
from stationmaster.settings import BillingSettings
from tests.support.chaos.fake import JOB, SCRIPT, Template
from tests.support.chaos.paid_jobs import GIVEN, PaidStation, template
from tests.support.chaos.points import Killed, KillPoints

_MOST_DEATHS = 6
_MOST_POINTS = 80
_CRASHES = replace(SCRIPT, exit_codes={("train", 1): 1}, fails_at=1)
_STORIES = ("completes", "crashes", "is cancelled", "loses its machine", "gets no machine", "is refused a machine")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; each next one's is one higher")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="money-marathon-") as folder:
        made = template(Path(folder) / "template")
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            try:
                told = _run(made, Path(folder) / str(seed), random.Random(seed))
            except AssertionError as problem:
                print(f"seed {seed}: {problem}")
                return 1
            tally[told] += 1
    for told, count in sorted(tally.items()):
        print(f"{count:>5}  {told}")
    print(f"{arguments.runs} runs, every charge right to the micro-dollar")
    return 0


def _run(made: Template, folder: Path, chance: random.Random) -> str:
    story = chance.choice(_STORIES)
    station = PaidStation(made, folder, script=_CRASHES if story == "crashes" else SCRIPT)
    if story == "gets no machine":
        station.provider.will(Trouble.NEVER_READY, times=3)
    if story == "is refused a machine":
        station.provider.will(Trouble.REFUSE_CREATE, times=chance.randint(1, 3))
    deaths = chance.randint(1, _MOST_DEATHS)
    for _ in range(deaths):
        try:
            station.work(KillPoints(kill_at=chance.randrange(_MOST_POINTS)))
        except Killed:
            pass
        station.let_leases_lapse()
        _meddle(story, station, chance)
    job = station.finish()
    _check(station, job)
    return f"{story}: {job.outcome} {job.reason}, {job.attempt} attempts"


def _meddle(story: str, station: PaidStation, chance: random.Random) -> None:
    if story == "loses its machine" and chance.random() < 0.5:
        station.lose_the_machine()
    if story == "is cancelled" and chance.random() < 0.5:
        with station.store() as store:
            if store.jobs.get(JOB).outcome is None:
                store.jobs.desire(JOB, Desired.CANCEL)


def _check(station: PaidStation, job: Job) -> None:
    """Each attempt was held for once and settled once, for what its reason and its machine say."""
    with station.store() as store:
        entries = list(store.ledger.entries(job=JOB))
    charged = 0
    for attempt in range(1, job.attempt + 1):
        mine = [entry for entry in entries if entry.attempt == attempt]
        held = sum(entry.held for entry in mine if entry.kind is EntryKind.HOLD)
        (settlement,) = [entry for entry in mine if entry.kind is EntryKind.SETTLEMENT]
        right = charge(
            Reason(settlement.note),
            held=MicroDollars(held),
            actual=MicroDollars(station.cost(attempt)),
            billing=BillingSettings(),
        )
        assert -settlement.held == right, f"attempt {attempt} was charged {-settlement.held} instead of {right}"
        charged += right
    assert station.account() == (GIVEN - charged, 0), f"{station.account()} after {charged} were charged"


if __name__ == "__main__":
    sys.exit(main())
