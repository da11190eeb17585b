"""Copies of collected checkpoints in the bucket: the next attempt can resume from them on any worker's host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stationmaster.control.destinations.job_bucket import bucket_key, send_from_machine
from stationmaster.control.flow.world import World
from stationmaster.control.machine.access import access_of, host_of, may_get_secrets
from stationmaster.errors import CommandFailed, DeliveryError, DiskFull, TransferFailed
from stationmaster.event_log import get_logger
from stationmaster.model import Job, OutputFile

log = get_logger("stationmaster.checkpoint_mirror")


async def mirror_checkpoint(file: OutputFile, job: Job, world: World) -> bool:
    """Have the machine upload the checkpoint to the bucket; True if it is there, verified. A bucket error is harmless.

    Raises Unreachable.
    """
    job_bucket = world.destinations.bucket
    if not world.policy.artifacts.mirror or job_bucket is None or not may_get_secrets(access_of(job), world.policy):
        return False
    try:
        await send_from_machine(file, job, host_of(job, world), job_bucket)
    except (DeliveryError, CommandFailed) as problem:
        log.info("checkpoint.not_mirrored", job=job.id, path=file.path, problem=str(problem))
        return False
    return True


async def remove_mirrored(job: Job, attempt: int, path: str, world: World) -> None:
    """Delete the copy of a checkpoint that is no longer kept here; after a failure it only takes up space."""
    job_bucket = world.destinations.bucket
    if job_bucket is not None:
        try:
            await job_bucket.call(job_bucket.artifacts.remove, _key(job, attempt, path))
        except DeliveryError as problem:
            log.info("checkpoint.still_in_bucket", job=job.id, path=path, problem=str(problem))


async def restore_checkpoint(job: Job, attempt: int, path: str, target: Path, sha256: str, world: World) -> bool:
    """Download the checkpoint from the bucket to `target`; True if it is there now."""
    job_bucket = world.destinations.bucket
    if job_bucket is None:
        return False
    try:
        await job_bucket.call(job_bucket.artifacts.get, _key(job, attempt, path), target, sha256=sha256)
    except (DeliveryError, TransferFailed, DiskFull, OSError) as problem:
        log.info("checkpoint.not_restored", job=job.id, path=path, problem=str(problem))
        return False
    return True


def _key(job: Job, attempt: int, path: str) -> str:
    return bucket_key(replace(job, attempt=attempt), path)
