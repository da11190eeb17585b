"""Hundreds of seeded deliveries with crashes: `python -m tests.chaos.delivery_marathon --runs 200 [--seed S]`.

Run number n has the seed S + n, which says all there is about it: how the Hub behaves, and where workers die.
Ends with 1 at the first broken promise.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import structlog

from stationmaster.errors import DeliveryBusy, DeliveryRefused
from tests.support.chaos.delivery import DeliveringStation, delivery_points
from tests.support.chaos.fake import Template
from tests.support.chaos.points import Killed, KillPoints
from tests.support.servers.fake_hub import FakeHub

_MOST_KILLS = 4
_BEHAVIOURS = ("well", "well", "refuses", "busy", "from home only", "private")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="deliveries-") as folder:
        template = Template(Path(folder))
        points = points_of_a_delivery(template, Path(folder, "clean"))
        for seed in range(given.seed, given.seed + given.runs):
            try:
                deliver(template, Path(folder, str(seed)), seed, points, tally)
            except (AssertionError, Killed):
                traceback.print_exc()
                print(f"broken by seed {seed}: repeat it with --runs 1 --seed {seed}", flush=True)
                return 1
    told = ", ".join(f"{what}: {count}" for what, count in sorted(tally.items()))
    print(f"{given.runs} deliveries; {told}; no promise broken", flush=True)
    return 0


def points_of_a_delivery(template: Template, folder: Path) -> list[int]:
    station = DeliveringStation(template, folder)
    points = KillPoints()
    station.work(points)
    station.check_delivered()
    return delivery_points(points.names)


def deliver(template: Template, folder: Path, seed: int, points: list[int], tally: Counter[str]) -> None:
    """One job whose first worker dies in the delivery and others soon after; then all that must hold is looked at."""
    randomness = random.Random(seed)
    behaviour = randomness.choice(_BEHAVIOURS)
    station = DeliveringStation(template, folder, hub=hub_that(behaviour))
    at = randomness.choice(points)
    for _ in range(randomness.randint(1, _MOST_KILLS)):
        try:
            station.work(KillPoints(kill_at=at))
            break  # it was done before the worker came to that point
        except Killed:
            tally["workers killed"] += 1
            station.let_leases_lapse()
        at = randomness.randrange(len(points))  # the next one begins in the middle
    station.work(KillPoints())
    tally[behaviour] += 1
    check(station, behaviour)


def hub_that(behaviour: str) -> FakeHub:
    hub = FakeHub(private=behaviour == "private")
    hub.from_machine_only = behaviour == "from home only"
    if behaviour in ("refuses", "from home only"):
        hub.refuses = DeliveryRefused("403")
    if behaviour == "busy":
        hub.refuses = DeliveryBusy("503")
    return hub


def check(station: DeliveringStation, behaviour: str) -> None:
    if behaviour in ("well", "from home only"):
        return station.check_delivered()
    station.check()
    expected = {"home", "hub"} if behaviour == "private" else {"home"}
    assert {place.kind for place in station.model().places} == expected, station.model().places
    assert station.comfydeploy.started == {}, "something was registered that nobody can download"
    assert len(station.events("catalogued")) == 1
    return None


if __name__ == "__main__":
    sys.exit(main())
