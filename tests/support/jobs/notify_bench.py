"""Notifications for tests: a store with jobs to which things happen, and notifiers that send to the messenger server.

Run as a program it runs one round, as a worker would: `python notify_bench.py STORE_URL HOME OWNER LEASE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stationmaster.config import load_settings
from stationmaster.control.messages.composer import MessageComposer
from stationmaster.control.messages.messaging import Messaging, open_messaging
from stationmaster.control.messages.notifier import Notifier
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent, Write
from tests.support.jobs.spine_values import spec

FLAGGED = NewEvent(
    kind="stall_flagged",
    payload={"currentStep": 230, "totalSteps": 400, "reason": "flat.", "grace_minutes": 15.0, "checkpointStep": 200},
)
ENDED = NewEvent(kind="terminated", payload={"reason": "STALLED", "checkpointStep": 200})
MILESTONE = NewEvent(kind="milestone", payload={"percent": 25, "step": 100, "total_steps": 400})


def happen(store: Store, job_id: str, *told: NewEvent, owner: str | None = None, **fields: Any) -> None:
    """Something happens to a job, which is submitted if it is not there."""
    store.jobs.submit(spec(job_id, owner=owner, **fields))
    leases = {lease.job.id: lease for lease in store.leases.claim("happening", limit=1000, seconds=20)}
    store.leases.settle(leases.pop(job_id), Write(job=store.jobs.get(job_id), due_in=0.0, events=told))
    for lease in leases.values():
        store.leases.free(lease)


async def tell(store: Store, home: Path, environ: Mapping[str, str], *, owner: str = "worker", **options: Any) -> None:
    """Run one round of a new notifier, as a new worker would."""
    messaging = opened(store, home, environ)
    try:
        await notifier_of(messaging, store, **options).run_round(owner)
    finally:
        await messaging.close()


def opened(store: Store, home: Path, environ: Mapping[str, str]) -> Messaging:
    return open_messaging(load_settings({"STATIONMASTER_HOME": str(home), **environ}, folder=home), store)


def notifier_of(messaging: Messaging, store: Store, **options: Any) -> Notifier:
    composer = MessageComposer(store, messaging.recipients)
    return Notifier(store, messaging.recipients, messaging.sender, composer, **options)


def main() -> None:
    url, home, owner, lease_seconds = sys.argv[1:]
    store = Store(Database(url))
    environ = {name: value for name, value in os.environ.items() if name.startswith("STATIONMASTER_NOTIFY_")}
    asyncio.run(tell(store, Path(home), environ, owner=owner, lease_seconds=float(lease_seconds)))
    store.close()


if __name__ == "__main__":
    main()
