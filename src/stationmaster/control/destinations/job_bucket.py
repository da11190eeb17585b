"""A job's files in the bucket: sent by the machine itself with a ticket, or by home from its own copy."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from stationmaster.control.destinations.tickets import Standing, TicketOffice
from stationmaster.delivery.artifact_store import BucketArtifacts, Progress
from stationmaster.delivery.bucket import Bucket, open_bucket
from stationmaster.errors import DeliveryBusy, DeliveryError, DeliveryRefused, TicketRefused
from stationmaster.model import Job
from stationmaster.remote.host import Host, OutputFile
from stationmaster.settings import Settings
from stationmaster.store.store import Store

_ROUNDS = 200  # of parts that did not all arrive; each one must bring something
_CALLS_AT_ONCE = 8
_SLOWEST_BYTES_PER_SECOND = 256 << 10

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketShelf:
    """The bucket in use: as a place for files, and with its ticket office."""

    bucket: Bucket
    store: BucketArtifacts
    office: TicketOffice
    public_url: str | None = None  # where machines reach our HTTP door
    # Its own: a service that hangs must not keep others from the threads that everything else shares.
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_CALLS_AT_ONCE, "bucket"))

    async def ask(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        """A call that waits for the bucket, off the event loop's thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, partial(function, *args, **kwargs))

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.bucket.close()


def open_shelf(settings: Settings, store: Store) -> BucketShelf | None:
    """The settings' bucket; None where none is set. Raises ConfigInvalid."""
    whole = open_bucket(settings.bucket)
    if whole is None:
        return None
    bucket = whole.below(store.installation_id)  # others may use the same bucket, and the same names for their jobs
    office = TicketOffice(store.tickets, bucket, seconds=settings.bucket.ticket)
    return BucketShelf(
        bucket=bucket, store=BucketArtifacts(bucket), office=office, public_url=settings.serve.public_url
    )


def bucket_key(job: Job, path: str) -> str:
    """Where a file of the job's current attempt lies in the bucket: a later attempt may use the same names."""
    return f"jobs/{job.id}/attempt-{job.attempt}/{path}"


async def send_from_machine(file: OutputFile, job: Job, host: Host, shelf: BucketShelf) -> str:
    """The machine puts one of its files into the bucket; where it lies, verified. What is there is not sent again.

    Raises DeliveryRefused and DeliveryBusy, and what the way to the machine raises. No key leaves home: the machine
    gets a signed address on standard input, or a ticket for home's HTTP door where it can be reached from outside.
    """
    assert file.sha256 is not None
    key, office = bucket_key(job, file.path), shelf.office
    # First, so that an upload whose end nobody noted is brought to its end, and leaves nothing in quarantine.
    standing = await shelf.ask(office.take_up, job_id=job.id, attempt=job.attempt, path=file.path, sha256=file.sha256)
    if standing is None and await shelf.ask(shelf.bucket.holds, key, size=file.size, sha256=file.sha256) is not None:
        return shelf.bucket.location(key)
    if standing is None and shelf.public_url is not None and await _sent_through_door(file, job, host, shelf, key):
        return shelf.bucket.location(key)
    if standing is None:
        standing = await _issued(await _opened(file, job, host, shelf, key), shelf)
    await _send_pieces(file, standing, host, shelf)
    return shelf.bucket.location(key)


async def send_from_home(
    path: Path, file: OutputFile, job: Job, shelf: BucketShelf, *, progress: Progress | None = None
) -> str:
    """Home's own copy of the file is in the bucket; where it lies, verified. What is there is not sent again."""
    assert file.sha256 is not None
    kept = await shelf.ask(shelf.store.put, bucket_key(job, file.path), path, sha256=file.sha256, progress=progress)
    return kept.location


async def _opened(
    file: OutputFile, job: Job, host: Host, shelf: BucketShelf, key: str, *, token: str | None = None
) -> str:
    assert file.sha256 is not None
    part_sha256s: tuple[str, ...] = ()
    if shelf.office.goes_in_parts(file.size):
        part_sha256s = await host.chunk_hashes(file.path, shelf.office.part_bytes)
        if len(part_sha256s) != -(-file.size // shelf.office.part_bytes):
            raise DeliveryBusy(f"{file.path} has changed on the machine since it was asked for")
    ticket = await shelf.ask(
        shelf.office.open,
        job_id=job.id,
        attempt=job.attempt,
        path=file.path,
        size=file.size,
        sha256=file.sha256,
        key=key,
        part_sha256s=part_sha256s,
        token=token,
    )
    return ticket.id


async def _issued(ticket: str, shelf: BucketShelf) -> Standing:
    try:
        return await shelf.ask(shelf.office.issue, ticket)
    except TicketRefused as problem:  # another worker has this job by now, and made the ticket void
        raise DeliveryBusy(str(problem)) from None


async def _send_pieces(file: OutputFile, standing: Standing, host: Host, shelf: BucketShelf) -> None:
    """Hand over addresses until everything has arrived; a round that brings nothing is the last."""
    for _ in range(_ROUNDS):
        if standing.is_done:
            return
        left = len(standing.pieces)
        pieces = [piece.to_json() for piece in standing.pieces]
        order = {"path": file.path, "size": file.size, "requests": pieces}
        answer = await host.carry_out("upload", order, further_seconds=patience_seconds(file.size))
        standing = await _settled(standing, answer, shelf)
        if not standing.is_done and len(standing.pieces) >= left:
            break
    if not standing.is_done:
        raise DeliveryBusy(f"{file.path} did not reach the bucket: {len(standing.pieces)} parts are missing")


async def _settled(standing: Standing, answer: Mapping[str, Any], shelf: BucketShelf) -> Standing:
    """What arrived counts, whatever the machine says; why nothing did, it knows better than the bucket."""
    try:
        return await shelf.ask(shelf.office.settle, standing.ticket.id)
    except TicketRefused as problem:
        if answer.get("ok"):
            raise DeliveryRefused(f"{standing.ticket.path}: {problem}") from None
        raise upload_problem(answer) from None


async def _sent_through_door(file: OutputFile, job: Job, host: Host, shelf: BucketShelf, key: str) -> bool:
    """Whether the machine has put the file into the bucket with a ticket; False if it did not get to the door."""
    token = secrets.token_urlsafe(32)
    ticket = await _opened(file, job, host, shelf, key, token=token)
    door = f"{str(shelf.public_url).rstrip('/')}/api/uploads/{ticket}"
    order = {"path": file.path, "size": file.size, "door": door, "token": token}
    answer = await host.carry_out("upload", order, further_seconds=patience_seconds(file.size))
    if not answer.get("ok"):
        if await shelf.ask(shelf.office.is_unused, ticket):
            return False
        # Even a refusal: the machine may have lost the one answer that it gets, and a new ticket brings another.
        raise upload_problem({**answer, "refused": False})
    assert file.sha256 is not None
    # The machine's word is not enough: the door is ours, but so is the risk.
    if await shelf.ask(shelf.bucket.holds, key, size=file.size, sha256=file.sha256) is None:
        raise DeliveryRefused(f"{file.path} is not in the bucket, though the machine says so")
    return True


def patience_seconds(size: int) -> float:
    """What a slow line may take for that many bytes, beyond the time that any order has."""
    return size / _SLOWEST_BYTES_PER_SECOND


def upload_problem(answer: Mapping[str, Any]) -> DeliveryError:
    """Why an upload by the machine failed, in its own words."""
    problem = f"the machine's upload failed: {answer.get('problem') or 'no reason was given'}"
    if answer.get("refused"):
        return DeliveryRefused(problem)
    after = answer.get("retry_after")
    return DeliveryBusy(problem, retry_after_seconds=float(after) if isinstance(after, int | float) else None)
