"""Jobs, rentals and machines for tests of the spine: whole values with one or two fields that matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stationmaster.control.flow.world import Rules, Visit
from stationmaster.model import (
    DatasetRef,
    Job,
    JobSpec,
    Listing,
    LocalAccess,
    Machine,
    MachineStatus,
    Offer,
    Quote,
    Rental,
    RentalState,
    RentedMachine,
    State,
)
from stationmaster.money import MicroDollars
from stationmaster.recipes.registry import find
from stationmaster.settings import MonitoringSettings
from stationmaster.store import runs
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from stationmaster.watch.baseline import RunFacts

INSTALLATION = "ab12cd34"
ACCOUNT = "fake-account"
ACCESS = LocalAccess(root="/m", job_root="/m/jobs", environment=(("PATH", "/bin"),))

_DATASET = DatasetRef(source="/images", archive="/home/datasets/x.tar", sha256="0" * 64, size=10, images=4)
_QUOTE = Quote(
    hours_low=0.5,
    hours_expected=1.0,
    hours_high=2.0,
    price_per_hour=MicroDollars(360_000),
    cost_low=MicroDollars(180_000),
    cost_expected=MicroDollars(360_000),
    cost_high=MicroDollars(720_000),
)


def spec(job_id: str = "job", **fields: Any) -> JobSpec:
    values: dict[str, Any] = {
        "id": job_id, "name": "cats", "recipe": "tiny-lora@1", "provider": "fake", "dataset": _DATASET,
        "quote": _QUOTE, "max_seconds": 14_400.0, "max_spend": MicroDollars(1_440_000),
    }  # fmt: skip
    return JobSpec(**{**values, **fields})


def job(job_id: str = "job", **fields: Any) -> Job:
    values: dict[str, Any] = {
        "spec": spec(job_id), "created_at": 0.0, "state": State.QUEUED, "state_since": 0.0, "attempt": 1,
    }  # fmt: skip
    return Job(**{**values, **fields})


def label(job_id: str = "job", attempt: int = 1) -> str:
    return f"sm-{INSTALLATION}-{job_id}-{attempt}"


MACHINE = RentedMachine(label=label(), access=ACCESS)
"""The machine of a job, after the first login."""


def rental(**fields: Any) -> Rental:
    values: dict[str, Any] = {
        "label": label(), "job_id": "job", "attempt": 1, "provider": "fake", "state": RentalState.HELD,
        "account": ACCOUNT, "provider_id": "m1", "create_sent_at": 10.0, "held_at": 11.0,
    }  # fmt: skip
    return Rental(**{**values, **fields})


def requested(**fields: Any) -> Rental:
    """A rental of which only the intent is written."""
    empty = {"state": RentalState.REQUESTED, "provider_id": None, "account": None, "create_sent_at": None}
    return rental(**{**empty, "held_at": None, **fields})


def machine(provider_id: str = "m1", **fields: Any) -> Machine:
    values: dict[str, Any] = {
        "provider_id": provider_id, "label": label(), "status": MachineStatus.RUNNING, "created_at": 1.0,
        "accesses": (ACCESS,), "price_per_hour": MicroDollars(360_000),
    }  # fmt: skip
    return Machine(**{**values, **fields})


def listing(*machines: Machine, complete: bool = True, account: str = ACCOUNT) -> Listing:
    return Listing(machines=machines, complete=complete, account=account)


def offer(**fields: Any) -> Offer:
    return replace(Offer(id="o1", provider="fake", price_per_hour=MicroDollars(360_000)), **fields)


class Held:
    """A lease that never ends."""

    def check(self) -> None:
        """It is still ours."""


async def record_nothing(_write: Write) -> None:
    """Nobody follows a stream here."""


def visit(looked_at: Job, *, now: float = 100.0, monitoring: MonitoringSettings | None = None) -> Visit:
    rules = Rules(looked_at.spec, find, monitoring or MonitoringSettings())
    return Visit(job=looked_at, now=now, guard=Held(), record=record_nothing, rules=rules)


def put_past_run(store: Store, job_id: str, facts: RunFacts) -> None:
    """A run that later ones are compared with."""
    with store.database.write() as connection:
        runs.put(connection, [runs.row_of(job_id, facts, now=store.now())])
