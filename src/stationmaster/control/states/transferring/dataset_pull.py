"""A dataset that lies in a bucket is fetched by the machine itself, over its own line. If it cannot be, it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from stationmaster.control.flow.world import World
from stationmaster.control.machine.access import may_get_secrets
from stationmaster.datasets.sources.reference import BucketSource, parse_source
from stationmaster.delivery.bucket import Bucket
from stationmaster.errors import CommandFailed, DeliveryError
from stationmaster.event_log import get_logger
from stationmaster.model import DatasetRef, Job
from stationmaster.recipes.schema import Recipe
from stationmaster.remote.host import Host

log = get_logger("stationmaster.transferring")

_ADDRESS_SECONDS = 3600.0
_FEW = 200
_TINY_BYTES = 16 << 10


async def pulled(job: Job, host: Host, folder: str, recipe: Recipe, world: World) -> bool:
    """Whether `folder` holds the dataset, fetched by the machine, every file with the SHA-256 that it has at home.

    The machine gets signed addresses, which read these files and nothing else, on standard input.
    """
    source = _source(job, recipe)
    if source is None or world.open_bucket is None or not may_get_secrets(job, world.policy):
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


def _source(job: Job, recipe: Recipe) -> BucketSource | None:
    """The prefix that the dataset's files lie below; an archive was unpacked at home, and is sent from there."""
    if "://" not in job.spec.dataset.source or not recipe.dataset.pull:
        return None
    source = parse_source(job.spec.dataset.source)
    return source if isinstance(source, BucketSource) else None


def _files(dataset: DatasetRef) -> list[dict[str, Any]]:
    manifest = json.loads(Path(f"{dataset.archive}.manifest.json").read_text(encoding="utf-8"))
    files: list[dict[str, Any]] = manifest["files"]
    return files


def _is_worth_it(files: Sequence[Mapping[str, Any]]) -> bool:
    """Many tiny files take longer one by one than as the one archive that home sends."""
    return len(files) <= _FEW or sum(file["size"] for file in files) >= len(files) * _TINY_BYTES


def _signed(
    files: Sequence[Mapping[str, Any]], source: BucketSource, open_bucket: Callable[[str], Bucket]
) -> list[dict[str, Any]]:
    prefix = f"{source.key}/" if source.key else ""
    with closing(open_bucket(source.bucket)) as bucket:
        return [{**file, "url": bucket.sign_get(f"{prefix}{file['path']}", seconds=_ADDRESS_SECONDS)} for file in files]
