"""Memory that 200 live streams add to one worker: real SSH connections, each streamed like a watched training.

The machines are one asyncssh server in a separate process, which answers as trackside would and writes a new status
with a new step to every follower each second. The worker is this process: its resident memory when it is idle, with
everything imported and one stream running, is subtracted from that after half a minute with all streams.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import asyncssh
import structlog

from _jobs import RECIPE, job_spec, small_dataset
from _process import resident_megabytes
from _report import report
from polled_jobs import TOTAL_STEPS, _status
from stationmaster.control.flow.world import World
from stationmaster.control.worker.worker import Worker
from stationmaster.model import Label, Rental, RentalState, RentedMachine, SshAccess, State
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.registry import find
from stationmaster.remote.connect import connect
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import Write

BUDGET_MEGABYTES = 80.0
STREAMS = 200
_ALL_SECONDS = 30.0
_PATIENCE_SECONDS = 240.0
_INTEREST_SECONDS = 3600.0


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        ours, theirs = multiprocessing.Pipe()
        machines = multiprocessing.get_context("spawn").Process(target=_serve, args=(temporary, theirs), daemon=True)
        machines.start()
        port, host_key = ours.recv()
        store = Store(Database(f"sqlite:///{folder}/store.db"))
        try:
            access = SshAccess(
                host="127.0.0.1",
                port=port,
                user="root",
                job_root="/jobs",
                key_path=str(folder / "client_key"),
                host_keys=(host_key,),
            )
            _fill(store, folder, access)
            idle, busy, written = asyncio.run(_measure(store, folder))
        finally:
            store.close()
            machines.terminate()
            machines.join()
    if written < 3 * STREAMS:
        raise SystemExit(f"only {written} pieces of log came from {STREAMS} streams: the measure is worthless")
    report(
        f"{STREAMS} streams in one worker: memory above the idle worker's", busy - idle, "MB", at_most=BUDGET_MEGABYTES
    )
    return 0


async def _measure(store: Store, folder: Path) -> tuple[float, float, int]:
    recipe = find(RECIPE)
    world = World(
        store=store,
        providers={"fake": FakeProvider()},
        connect=lambda found: connect(found, way="sftp"),
        find_recipe=lambda _reference: recipe,
        secrets=lambda _name: None,
        home=folder,
        trackside=folder / "trackside.pyz",
    )
    worker = Worker(world)
    working = asyncio.create_task(worker.run())
    try:
        await asyncio.to_thread(_watch, store, range(1))
        await _until_streaming(store, 1)
        idle = resident_megabytes(os.getpid())
        await asyncio.to_thread(_watch, store, range(1, STREAMS))
        await _until_streaming(store, STREAMS)
        before = await asyncio.to_thread(_pieces, store)
        await asyncio.sleep(_ALL_SECONDS)
        busy, after = resident_megabytes(os.getpid()), await asyncio.to_thread(_pieces, store)
    finally:
        worker.leave()
        await working
        await world.close()
    return idle, busy, after - before


def _fill(store: Store, folder: Path, access: SshAccess) -> None:
    """Store jobs that are training, none of them due for a long time."""
    dataset = small_dataset(folder)
    for number in range(STREAMS):
        store.jobs.submit(job_spec(number, dataset, steps=TOTAL_STEPS))
    for lease in store.leases.claim("set-up", limit=STREAMS, seconds=600.0):
        store.leases.settle(lease, _training(lease, store.installation_id, access))


def _watch(store: Store, numbers: range) -> None:
    """Register a watcher for these jobs, so that they are streamed."""
    for number in numbers:
        store.watchers.register(f"job-{number}", "bench", seconds=_INTEREST_SECONDS)


def _training(lease: Lease, installation: str, access: SshAccess) -> Write:
    label = str(Label(installation=installation, job=lease.job.id, attempt=1))
    job = replace(lease.job, state=State.EXECUTING, state_since=lease.now - 3600.0, attempt=1)
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
    return Write(
        job=replace(job, machine=RentedMachine(label=label, access=access)), rentals=(rental,), due_in=_INTEREST_SECONDS
    )


async def _until_streaming(store: Store, count: int) -> None:
    """Wait until every job has several pieces of log, which come only from its stream."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while await asyncio.to_thread(_streaming, store) < count:  # noqa: ASYNC110 (the store has no event for it)
            await asyncio.sleep(0.2)


def _streaming(store: Store) -> int:
    return sum(len(store.logs.of_job(job.id, limit=4)) >= 3 for job in store.jobs.listed(with_ended=True, limit=1000))


def _pieces(store: Store) -> int:
    return sum(len(store.logs.of_job(job.id)) for job in store.jobs.listed(with_ended=True, limit=1000))


def _serve(folder: str, sender: Connection) -> None:
    """Serve all machines until this process is killed."""
    asyncio.run(_serve_machines(Path(folder), sender))


async def _serve_machines(folder: Path, sender: Connection) -> None:
    host_key, client_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    client_key.write_private_key(str(folder / "client_key"))
    client_key.write_public_key(str(folder / "client_key.pub"))
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=str(folder / "client_key.pub"),
        process_factory=_answer,
    )
    sender.send((server.get_port(), host_key.export_public_key().decode().strip()))
    await asyncio.Event().wait()


async def _answer(process: asyncssh.SSHServerProcess[str]) -> None:
    command = process.command or ""
    try:
        if " follow " in command:
            step = 0
            while True:
                process.stdout.write(json.dumps(_status(step)) + "\n")
                await process.stdout.drain()
                step = _next(step)
                await asyncio.sleep(1.0)
        elif " status " in command:
            process.stdout.write(json.dumps(_status(0)) + "\n")
        process.exit(0)
    except (BrokenPipeError, asyncssh.Error):
        process.exit(1)


def _next(start: int) -> int:
    piece: dict[str, Any] = _status(start)["log"][0]
    return int(piece["end"])


if __name__ == "__main__":
    sys.exit(main())
