"""A job that is paid for with credits, on machines in memory whose workers can be killed at any point."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from stationmaster.control.billing.charges import cost_of_attempt
from stationmaster.control.flow.policy import Policy
from stationmaster.model import Job, JobSpec, Quote
from stationmaster.money import MicroDollars
from stationmaster.remote.fake_trackside import Script
from stationmaster.settings import MonitoringSettings, StallSettings
from stationmaster.store.store import Store
from tests.support.chaos.fake import JOB, POLICY, SCRIPT, FakeStation, Template
from tests.support.chaos.points import Killed, KillPoints, first_of_moment
from tests.support.policies import changed

USER = "ann"
RATE = MicroDollars(360_000)
LEAST = MicroDollars(72_000)  # what the job may well come to cost: a fifth of an hour
MOST = MicroDollars(144_000)
GIVEN = MicroDollars(1_000_000)
QUOTE = Quote(
    hours_low=0.05, hours_expected=0.1, hours_high=0.2, price_per_hour=RATE, cost_low=MicroDollars(18_000),
    cost_expected=MicroDollars(36_000), cost_high=LEAST,
)  # fmt: skip
BILLED = changed(POLICY, billing={"enabled": True}, limits={"ready": 120.0})
UNHURRIED = replace(
    BILLED,
    monitoring=MonitoringSettings(
        poll_interval=5,
        watch_interval=5,
        grace_period=60,
        stall_detection=StallSettings(thresholds={"min_window": 60, "near_end_eta": 0}),
    ),
)
"""For a training that would not end: between two looks time passes."""


def template(folder: Path, *, given: MicroDollars = GIVEN) -> Template:
    """A store with Ann's job in it, and with her credits."""

    def prepare(store: Store, spec: JobSpec) -> None:
        if given:
            store.ledger.grant(USER, given, note="to begin with")
        store.jobs.submit(replace(spec, owner=USER, quote=QUOTE, max_spend=MOST))

    return Template(folder, prepare=prepare)


def points_around_money(station: PaidStation) -> list[tuple[int, str]]:
    """The points just before and after each commit that moves credits, in an undisturbed run."""
    points = KillPoints()
    changes: list[int] = []
    before = 0

    def point(name: str) -> None:
        nonlocal before
        points(name)
        if name == "after COMMIT" and (now := _count_entries(station.template.folder / "live.db")) != before:
            before = now
            changes.append(len(points.names) - 1)

    station.work(point)
    near = {at + step for at in changes[1:] for step in range(-4, 2)}  # the first found what was there before
    within = (at for at in sorted(near) if 0 <= at < len(points.names))
    return [(at, points.names[at]) for at in within if first_of_moment(points.names, at) == at]


def _count_entries(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM ledger_entries").fetchone()[0])


class PaidStation(FakeStation):
    def __init__(self, made: Template, folder: Path, *, policy: Policy = BILLED, script: Script = SCRIPT) -> None:
        super().__init__(made, folder, policy=policy, script=script)

    def interrupt(self, at: Callable[[str], bool], then: Callable[[Store], object]) -> None:
        """Work until a point whose name pleases; there the worker dies, and `then` is done."""
        points = KillPoints()
        seen = 0

        def point(name: str) -> None:
            nonlocal seen
            points(name)
            if at(name):
                points.dead = True
                raise Killed(name)
            seen += 1

        try:
            self.work(point)
        except Killed:
            pass
        else:
            raise AssertionError(f"never came to that point; passed {seen}")
        with self.store() as store:
            then(store)
        self.let_leases_lapse()

    def lose_the_machine(self) -> None:
        for provider_id in list(self.provider.machines):
            self.provider.vanish(provider_id)

    def finish(self) -> Job:
        self.work(KillPoints())
        with self.store() as store:
            return store.jobs.get(JOB)

    def account(self) -> tuple[int, int]:
        """What Ann can spend, and what is held; the ledger is proved on the way."""
        with self.store() as store:
            proof = store.ledger.prove()
            assert proof.problems == ()
            account = store.ledger.account(USER)
        return account.balance, account.held

    def cost(self, attempt: int) -> int:
        """What an attempt's machine cost, by its closed lines."""
        with self.store() as store:
            lines = store.costs.of_job(JOB)
            assert all(line.ended_at is not None for line in lines)
            return cost_of_attempt(attempt, lines, store.rentals.of_job(JOB))

    def told(self, kind: str) -> list[dict[str, object]]:
        with self.store() as store:
            return [dict(event.payload) for event in store.events.of_job(JOB) if event.kind == kind]
