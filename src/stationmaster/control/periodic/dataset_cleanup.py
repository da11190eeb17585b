"""Deletes local datasets that no job needs: with their last job, or unused for a long time; uploads after 3 days."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from functools import partial
from pathlib import Path

from stationmaster.control.flow.world import World
from stationmaster.datasets.stale_archives import remove_archive, remove_unused
from stationmaster.datasets.uploads.folder import UNUSED_SECONDS, folders_in
from stationmaster.errors import NotFound
from stationmaster.event_log import get_logger
from stationmaster.model import DatasetRef, Job, State
from stationmaster.store.store import Store

log = get_logger("stationmaster.leftovers")

_LEAST_SECONDS = 3600.0  # a dataset is downloaded and packed before the job that needs it is written


async def clean_up_datasets(world: World) -> None:
    """Delete local datasets that no job needs."""
    try:
        gone = await asyncio.to_thread(
            remove_leftovers, world.home, world.store, unused_seconds=world.policy.transfer.cache_age
        )
        gone += await asyncio.to_thread(remove_unused_uploads, world.home, world.store)
        await asyncio.to_thread(recount_uploads, world.home, world.store)
    except OSError as problem:
        log.warning("datasets.not_removed", problem=str(problem))
        return
    if gone:
        log.info("datasets.removed", files=[path.name for path in gone])


def remove_leftovers(home: Path, store: Store, *, unused_seconds: float) -> list[Path]:
    """Delete archives and downloaded datasets that no job used for that time, and expired proposals; what was deleted.

    What a job needs that has not ended stays, and so does what a retry of one that ended within this time would need.
    """
    seconds = max(unused_seconds, _LEAST_SECONDS)
    store.proposals.remove_expired()

    def is_wanted(sha256: str) -> bool:
        since = store.now() - seconds
        proposed = store.proposals.wants_dataset(sha256)
        return proposed or any(_may_need(job, since) for job in store.jobs.of_dataset(sha256))

    return remove_unused(home / "datasets", seconds=seconds, is_wanted=is_wanted)


def remove_unused_uploads(home: Path, store: Store) -> list[Path]:
    """Delete uploads that were not used for some days; a job that trains on one has an archive of its own.

    Whoever proposes a job uses the upload first, under the lock of its folder: so it stays while it is being packed.
    """
    uploads = home / "uploads"
    for left in uploads.glob(".*.going"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    return [
        folder.path
        for folder in folders_in(uploads)
        if folder.remove(unused_seconds=UNUSED_SECONDS, forget=partial(store.dataset_uploads.remove, folder.id))
    ]


def recount_uploads(home: Path, store: Store) -> None:
    """Charge users for the files that are there: a server that was killed may have counted one that is not."""
    for folder in folders_in(home / "uploads"):
        with contextlib.suppress(NotFound):  # removed meanwhile
            folder.recount(partial(store.dataset_uploads.recount, folder.id))


def forget_dataset(dataset: DatasetRef, home: Path, store: Store) -> None:
    """The dataset of a removed job or proposal is gone from home, unless another job, ended or not, or another
    proposal has the same.

    One that is proposed with the same dataset at this moment packs it anew: it looks for it when it is written.
    """
    if not dataset.sha256:  # an adopted training has none
        return
    remove_archive(
        home / "datasets",
        dataset.sha256,
        seconds=0.0,
        is_wanted=lambda sha256: store.proposals.wants_dataset(sha256) or bool(store.jobs.of_dataset(sha256)),
    )


def _may_need(job: Job, since: float) -> bool:
    return job.state is not State.ENDED or (job.ended_at or job.state_since) >= since
