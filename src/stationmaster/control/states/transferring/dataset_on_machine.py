"""Datasets that need not be sent: an earlier job left a copy on the machine, or the machine downloads from a bucket.

Whatever goes wrong here costs nothing but time: the dataset is then sent from here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import World
from stationmaster.control.machine.access import access_of, may_get_secrets
from stationmaster.datasets.sources.reference import BucketReference, parse_reference
from stationmaster.delivery.bucket import Bucket
from stationmaster.errors import CommandFailed, DeliveryError
from stationmaster.event_log import get_logger
from stationmaster.model import DatasetRef, Job, SshAccess
from stationmaster.recipes.schema import Recipe
from stationmaster.remote.host import Host

log = get_logger("stationmaster.transferring")

_ADDRESS_SECONDS = 3600.0
_FEW = 200
_TINY_BYTES = 16 << 10


def can_be_cached(job: Job, policy: Policy) -> bool:
    """Whether a later job could find the dataset on the machine: this computer's own machines go with their job."""
    return policy.transfer.cache_bytes > 0 and isinstance(job.machine.access, SshAccess)


async def take_cached(job: Job, host: Host, archive: str, *, room_bytes: int) -> bool:
    """Put an earlier job's copy of the dataset at `archive`; False: there is none. Its hash is still to be checked."""
    try:
        return await host.take_cached_archive(archive, job.spec.dataset.sha256, room_bytes=room_bytes)
    except CommandFailed:
        return False


async def cache_dataset(job: Job, host: Host, archive: str, policy: Policy) -> None:
    """Leave the dataset, which was verified there, on the machine for later jobs."""
    sha256, most_bytes = job.spec.dataset.sha256, policy.transfer.cache_bytes
    try:
        await host.cache_archive(archive, sha256, most_bytes=most_bytes, most_seconds=policy.transfer.cache_age)
    except CommandFailed:
        pass  # a disk or a folder that does not allow it costs the next job a transfer, and this one nothing


async def download_on_machine(job: Job, host: Host, folder: str, recipe: Recipe, world: World) -> bool:
    """Have the machine download the dataset to `folder`; True if every file arrived with its known SHA-256.

    The machine gets signed addresses, which read these files and nothing else, on standard input.
    """
    source = _source(job, recipe)
    if source is None or world.open_bucket is None or not may_get_secrets(access_of(job), world.policy):
        return False
    try:
        files = await asyncio.to_thread(_files, job.spec.dataset)
        if not _is_worth_it(files):
            return False
        signed = await asyncio.to_thread(_signed, files, source, world.open_bucket)
        order = {"directory": folder, "fingerprint": job.spec.dataset.sha256, "files": signed}
        answer = await host.carry_out("download", order)
    except (OSError, ValueError, DeliveryError, CommandFailed) as problem:
        answer = {"problem": str(problem)}
    if not answer.get("ok"):
        log.info("dataset.not_pulled", job=job.id, problem=answer.get("problem"))
    return bool(answer.get("ok"))


def _source(job: Job, recipe: Recipe) -> BucketReference | None:
    """The bucket prefix of the dataset's files; None for an archive, which was unpacked here and is sent from here."""
    if "://" not in job.spec.dataset.source or not recipe.dataset.pull:
        return None
    source = parse_reference(job.spec.dataset.source)
    return source if isinstance(source, BucketReference) else None


def _files(dataset: DatasetRef) -> list[dict[str, Any]]:
    manifest = json.loads(Path(f"{dataset.archive}.manifest.json").read_text(encoding="utf-8"))
    files: list[dict[str, Any]] = manifest["files"]
    return files


def _is_worth_it(files: Sequence[Mapping[str, Any]]) -> bool:
    """Many tiny files take longer one by one than as the one archive that is sent from here."""
    return len(files) <= _FEW or sum(file["size"] for file in files) >= len(files) * _TINY_BYTES


def _signed(
    files: Sequence[Mapping[str, Any]], source: BucketReference, open_bucket: Callable[[str], Bucket]
) -> list[dict[str, Any]]:
    prefix = f"{source.key}/" if source.key else ""
    with closing(open_bucket(source.bucket)) as bucket:
        return [{**file, "url": bucket.sign_get(f"{prefix}{file['path']}", seconds=_ADDRESS_SECONDS)} for file in files]
