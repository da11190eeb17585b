"""Downloads samples and metrics files during the training, so that you see them while it runs.

New files are recognised by their time on the machine. What is downloaded in one visit and for one job has a limit: the
rest comes after the training, with all other files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import cut_off, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import drop_connection, host_of
from stationmaster.control.machine.keepalive import keepalive
from stationmaster.control.results.job_folder import arriving, fetched_path
from stationmaster.errors import DiskFull, RemoteError, TransferFailed, Unreachable
from stationmaster.model import Checkpoint, Job, OutputFile
from stationmaster.recipes.outputs import output_of, step_of
from stationmaster.recipes.schema import Output, OutputKind
from stationmaster.remote.status import Status
from stationmaster.remote.transfer import pull_verified
from stationmaster.store.writes import NewEvent, Write

MOST_FILES = 32
"""In one visit."""
LARGEST_BYTES = 64 * 2**20
"""A larger file is no sample."""
_MOST_BYTES = 2**30  # for one job
_SETTLED_SECONDS = 2.0
_VISIT_SECONDS = 60.0  # the log is not read meanwhile
_KINDS = (OutputKind.SAMPLE, OutputKind.METRICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectSamples:
    """Download these files of the running training, oldest first."""

    files: tuple[OutputFile, ...]


def next_samples(job: Job, status: Status, *, policy: Policy, now: float) -> CollectSamples | None:
    """The samples and metrics files that are newer than those downloaded, and no longer written."""
    known = job.collection
    every = policy.artifacts.samples_every
    last = job.state_since if known.samples_at is None else known.samples_at
    if every <= 0 or now - last < every or known.sample_bytes >= _MOST_BYTES:
        return None
    fresh = sorted(
        (file for file in status.outputs if _is_fresh(file, after=known.newest_sample, wall=status.wall)), key=_age
    )
    return CollectSamples(files=tuple(fresh[:MOST_FILES])) if fresh else None


async def collect_samples(
    action: CollectSamples, job: Job, visit: Visit, outputs: Sequence[Output], world: World
) -> Write:
    """Download what can be had within a visit's time. A file that cannot be had now comes after the training."""
    rows: list[Checkpoint] = []
    tried = action.files
    try:
        async with asyncio.timeout(_VISIT_SECONDS), keepalive(host_of(job, world), visit, after_status=True):
            await download_samples([file.path for file in action.files], job, visit, outputs, world, rows)
    except Unreachable as problem:
        await drop_connection(job, world)
        return cut_off(job, now=visit.now, policy=world.policy, problem=str(problem))
    except TimeoutError:
        tried = action.files[: len(rows) + 1]  # what took too long is not tried again
    except (RemoteError, DiskFull):
        pass
    after = replace(
        job.collection,
        samples_at=visit.now,
        newest_sample=_age(tried[-1]),
        sample_bytes=job.collection.sample_bytes + sum(row.size for row in rows),
    )
    samples = [row for row in rows if row.kind == OutputKind.SAMPLE]
    events = (NewEvent(kind="samples_collected", payload=_payload(samples)),) if samples else ()
    return wait(replace(job, collection=after), 0.0, checkpoints=tuple(rows), events=events)


async def download_samples(
    paths: Sequence[str], job: Job, visit: Visit, outputs: Sequence[Output], world: World, rows: list[Checkpoint]
) -> None:
    """Download and verify these files and add a row for each; one that is too large, or changes, is skipped.

    Raises Unreachable and DiskFull.
    """
    host, folder = host_of(job, world), world.artifacts(job.id)
    hashes = await host.hash(list(paths))
    for path in paths:
        there, output = hashes.get(path), output_of(path, outputs)
        if there is None or output is None or there.size > LARGEST_BYTES:
            continue
        target = fetched_path(folder, attempt=job.attempt, path=path)
        try:
            await pull_verified(host, path, target, there, parts=arriving(folder))
        except TransferFailed:
            continue  # it is written again; the next version is newer
        rows.append(
            Checkpoint(
                attempt=job.attempt,
                path=path,
                kind=output.kind.value,
                size=there.size,
                step=step_of(path, outputs, offset=job.watching.step_offset),
                sha256=there.sha256,
                location=str(target),
                verified_at=visit.now,
            )
        )


def _is_fresh(file: OutputFile, *, after: tuple[float, str] | None, wall: float) -> bool:
    """Whether it is small enough, newer than what is here, and was not written in the last moment."""
    is_still = not 0 <= wall - file.mtime < _SETTLED_SECONDS
    is_wanted = file.kind in _KINDS and 0 < file.size <= LARGEST_BYTES
    return is_wanted and is_still and (after is None or _age(file) > after)


def _age(file: OutputFile) -> tuple[float, str]:
    return file.mtime, file.path


def _payload(samples: Sequence[Checkpoint]) -> dict[str, object]:
    steps = [row.step for row in samples if row.step is not None]
    return {"count": len(samples), "step": max(steps, default=None), "files": [row.path for row in samples]}
