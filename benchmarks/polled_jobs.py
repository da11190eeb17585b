"""One worker with 1,000 executing jobs on PostgreSQL, each polled every 60 seconds: share of a core and memory.

A fake inside the worker's process replaces the machines. It has no state and answers as trackside would: 60 new steps
since the last poll, their redraws thinned to the first and the last. Making that answer is part of the measured time.
In a second run the answer also has the measured rows of a minute: 60 steps and 12 samples of the machine.
One round of all jobs comes first and is not measured; then one minute is.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import structlog

from _jobs import RECIPE, job_spec, small_dataset
from _postgres import postgresql_url
from _process import cpu_seconds, resident_megabytes
from _report import report
from stationmaster.control.flow.world import World
from stationmaster.control.worker.worker import Worker
from stationmaster.model import Label, LocalAccess, Rental, RentalState, RentedMachine, State
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.registry import find
from stationmaster.remote.base import Completed, Remote
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import Write

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.series.simulated_run import simulated_run

BUDGET_PERCENT = 8.0
BUDGET_PERCENT_MEASURED = 12.0
BUDGET_MEGABYTES = 150.0
JOBS = 1000
POLL_SECONDS = 60.0
TOTAL_STEPS = 1_000_000
_AGE_SECONDS = 3600.0  # a new training is polled more often
_WARM_UP_SECONDS = 65.0
#: The measured rows of a minute. The same each time: home does not compare them.
_MINUTE = json.dumps(
    [
        {"table": table.name, "last": len(table), "columns": table.as_lists()}
        for table in simulated_run(1 / 60)
        if table.name not in ("RunInfo", "TrainingEvent")
    ]
)


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    for is_measured, at_most in ((False, BUDGET_PERCENT), (True, BUDGET_PERCENT_MEASURED)):
        percent, megabytes = _with_jobs(is_measured=is_measured)
        what = f"{JOBS} executing jobs, asked every {POLL_SECONDS:g} s{', with measured values' * is_measured}"
        report(f"{what}: share of a core", percent, "%", at_most=at_most)
        report(f"{what}: resident memory", megabytes, "MB", at_most=BUDGET_MEGABYTES)
    return 0


def _with_jobs(*, is_measured: bool) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder, postgresql_url() as url:
        store = Store(Database(url))
        try:
            _fill(store, Path(folder))
            percent, megabytes, polls = asyncio.run(_measure(store, Path(folder), is_measured=is_measured))
        finally:
            store.close()
    if polls < 0.9 * JOBS:
        raise SystemExit(f"only {polls} of {JOBS} jobs were asked: the measure is worthless")
    return percent, megabytes


def _fill(store: Store, folder: Path) -> None:
    """Jobs that have been training for an hour, due one after the other over the next minute."""
    dataset = small_dataset(folder)
    for number in range(JOBS):
        store.jobs.submit(job_spec(number, dataset, steps=TOTAL_STEPS))
    leases = store.leases.claim("set-up", limit=JOBS, seconds=600.0)
    for number, lease in enumerate(leases):
        store.leases.settle(lease, _training(lease, store.installation_id, due_in=1 + POLL_SECONDS * number / JOBS))


def _training(lease: Lease, installation: str, *, due_in: float) -> Write:
    label = str(Label(installation=installation, job=lease.job.id, attempt=1))
    access = LocalAccess(root=f"/fake/{lease.job.id}", job_root=f"/fake/{lease.job.id}/jobs")
    job = replace(lease.job, state=State.EXECUTING, state_since=lease.now - _AGE_SECONDS, attempt=1)
    rental = Rental(
        label=label,
        job_id=job.id,
        attempt=1,
        provider="fake",
        state=RentalState.HELD,
        provider_id=job.id,
        account="fake-account",
        create_sent_at=lease.now,
        held_at=lease.now,
    )
    return Write(job=replace(job, machine=RentedMachine(label=label, access=access)), rentals=(rental,), due_in=due_in)


async def _measure(store: Store, folder: Path, *, is_measured: bool) -> tuple[float, float, int]:
    recipe = find(RECIPE)
    answers = _Answers(is_measured=is_measured)
    world = World(
        store=store,
        providers={"fake": FakeProvider()},
        connect=lambda _access: cast(Remote, answers),
        find_recipe=lambda _reference: recipe,
        secrets=lambda _name: None,
        home=folder,
        trackside=folder / "trackside.pyz",
    )
    worker = Worker(world)
    working = asyncio.create_task(worker.run())
    await asyncio.sleep(_WARM_UP_SECONDS)
    began, used, asked = time.monotonic(), cpu_seconds(os.getpid()), answers.given
    await asyncio.sleep(POLL_SECONDS)
    percent = 100 * (cpu_seconds(os.getpid()) - used) / (time.monotonic() - began)
    megabytes, polls = resident_megabytes(os.getpid()), answers.given - asked
    worker.leave()
    await working
    await world.close()
    return percent, megabytes, polls


class _Answers:
    """Answers for all machines: the log of a training with one step per second, made from the requested offset."""

    def __init__(self, *, is_measured: bool) -> None:
        self.given = 0
        self._is_measured = is_measured

    async def run(self, argv: Sequence[str], **_options: Any) -> Completed:
        assert argv[4] == "status", argv
        since = json.loads(argv[argv.index("--since") + 1])
        start = int(since["log"].get("1.1", {"offset": 0})["offset"])
        self.given += 1
        series = f', "series": {_MINUTE}}}' if self._is_measured else "}"
        return Completed(exit_status=0, stdout=(json.dumps(_status(start)).removesuffix("}") + series).encode())

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _status(start: int) -> dict[str, Any]:
    first = start // len(_bar(0)) + 1
    drawn = range(first + 29, first + 60, 30)  # what is left of a minute: a redraw for each mark of time
    data = "".join(_bar(step) for step in (first, *drawn)).encode()
    wall = time.time()
    times = [[(index + 2) * len(_bar(0)), wall - (first + 59 - step)] for index, step in enumerate(drawn)]
    train = {"index": 1, "name": "train", "training": True, "state": "running", "try": 1, "exit_known": True}
    return {
        "format": 1,
        "version": "0.1.0",
        "wall": wall,
        "monotonic": wall,
        "boot_id": "boot",
        "started": True,
        "supervisor": {"alive": True, "pid": 7},
        "steps": [
            {"index": 0, "name": "check", "state": "done", "try": 1, "exit_code": 0, "started_at": 1.0},
            {**train, "started_at": 2.0, "pid": 12},
        ],
        "finished": None,
        "training_alive": True,
        "needs_secrets": [],
        "heartbeat": wall,
        "log": [
            {
                "stream": "1.1",
                "inode": 3,
                "start": start,
                "end": start + 60 * len(_bar(0)),
                "restarted": False,
                "data": base64.b64encode(data).decode(),
                "times": times,
            }
        ],
        "more": False,
        "outputs": [],
        "gpu": [{"index": 0, "name": "Fake", "memory_used_mib": 1, "memory_total_mib": 2, "utilization_percent": 97}],
        "memory": {"total_bytes": 2**34, "available_bytes": 2**33, "swap_used_bytes": 0},
        "disk": {"total_bytes": 2**36, "free_bytes": 2**35},
    }


def _bar(step: int) -> str:
    """One redraw of ai-toolkit's bar, always of the same length."""
    left = TOTAL_STEPS - step
    clock = f"{left // 3600:03}:{left // 60 % 60:02}:{left % 60:02}"
    drawn = f"\rjob:  {step * 100 // TOTAL_STEPS:2}%|##        | {step:07}/{TOTAL_STEPS}"
    return f"{drawn} [01:00:00<{clock},  1.00s/it, lr: 1.0e-04 loss: 3.141e-01]"


if __name__ == "__main__":
    sys.exit(main())
