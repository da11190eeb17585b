"""Uploads a job's files to the bucket: from the machine with an upload ticket, or from the local copy."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from stationmaster.control.destinations.upload_tickets import UploadStatus, UploadTickets
from stationmaster.delivery.artifact_store import BucketArtifacts
from stationmaster.delivery.bucket import Bucket, open_bucket
from stationmaster.delivery.verified_write import Progress
from stationmaster.errors import DeliveryBusy, DeliveryError, DeliveryRefused, TicketRefused
from stationmaster.model import Job, OutputFile
from stationmaster.remote.host import Host
from stationmaster.settings import Settings
from stationmaster.store.store import Store

_ROUNDS = 200  # of sending the missing parts; a round without progress ends it
_CALLS_AT_ONCE = 8
_SLOWEST_BYTES_PER_SECOND = 256 << 10

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBucket:
    """The bucket for job files, with its artifact store and its upload tickets."""

    bucket: Bucket
    artifacts: BucketArtifacts
    tickets: UploadTickets
    public_url: str | None = None  # of `stationmaster serve`, as machines reach it
    # Its own threads: a service that hangs must not use up those that everything else shares.
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_CALLS_AT_ONCE, "bucket"))

    async def call(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        """Run a blocking call to the bucket in a thread of the pool."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, partial(function, *args, **kwargs))

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.bucket.close()


def open_job_bucket(settings: Settings, store: Store) -> JobBucket | None:
    """Open the bucket in the settings; None if none is set. Raises ConfigInvalid."""
    whole = open_bucket(settings.bucket)
    if whole is None:
        return None
    bucket = whole.below(store.installation_id)  # another installation may use the same bucket and job names
    tickets = UploadTickets(store.tickets, bucket)
    return JobBucket(
        bucket=bucket, artifacts=BucketArtifacts(bucket), tickets=tickets, public_url=settings.serve.public_url
    )


def bucket_key(job: Job, path: str) -> str:
    """The key of a file of the job's current attempt: a later attempt may use the same names."""
    return f"jobs/{job.id}/attempt-{job.attempt}/{path}"


async def send_from_machine(file: OutputFile, job: Job, host: Host, job_bucket: JobBucket) -> str:
    """Upload a file from the machine and verify it; returns its address. A file that is there is not sent again.

    Raises DeliveryRefused, DeliveryBusy and errors of the connection to the machine. No key is sent to the machine: it
    gets a signed URL on standard input, or a ticket for our HTTP API where `serve.public_url` is set.
    """
    assert file.sha256 is not None
    key, tickets = bucket_key(job, file.path), job_bucket.tickets
    # First, so that an upload that finished unrecorded is completed and leaves nothing in quarantine.
    status = await job_bucket.call(
        tickets.resume, job_id=job.id, attempt=job.attempt, path=file.path, sha256=file.sha256
    )
    if status is None and await _is_stored(file, job_bucket, key):
        return job_bucket.bucket.location(key)
    if status is None and job_bucket.public_url is not None and await _send_via_api(file, job, host, job_bucket, key):
        return job_bucket.bucket.location(key)
    if status is None:
        status = await _issue(await _open_ticket(file, job, host, job_bucket, key), job_bucket)
    await _send_pieces(file, status, host, job_bucket)
    return job_bucket.bucket.location(key)


async def send_local_copy(
    path: Path, file: OutputFile, job: Job, job_bucket: JobBucket, *, progress: Progress | None = None
) -> str:
    """Upload the local copy and verify it; returns its address. A file that is there is not sent again."""
    assert file.sha256 is not None
    key, put = bucket_key(job, file.path), job_bucket.artifacts.put
    stored = await job_bucket.call(put, key, path, sha256=file.sha256, progress=progress)
    return stored.location


async def _open_ticket(
    file: OutputFile, job: Job, host: Host, job_bucket: JobBucket, key: str, *, token: str | None = None
) -> str:
    assert file.sha256 is not None
    part_sha256s: tuple[str, ...] = ()
    if job_bucket.tickets.goes_in_parts(file.size):
        part_sha256s = await host.chunk_hashes(file.path, job_bucket.tickets.part_bytes, size=file.size)
        if len(part_sha256s) != -(-file.size // job_bucket.tickets.part_bytes):
            raise DeliveryBusy(f"{file.path} changed on the machine since it was listed")
    ticket = await job_bucket.call(
        job_bucket.tickets.open,
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


async def _issue(ticket: str, job_bucket: JobBucket) -> UploadStatus:
    try:
        return await job_bucket.call(job_bucket.tickets.issue, ticket)
    except TicketRefused as problem:  # another worker has this job now and voided the ticket
        raise DeliveryBusy(str(problem)) from None


async def _send_pieces(file: OutputFile, status: UploadStatus, host: Host, job_bucket: JobBucket) -> None:
    """Send signed URLs to the machine until every part has arrived; a round without progress is the last."""
    for _ in range(_ROUNDS):
        if status.is_done:
            return
        left = len(status.pieces)
        pieces = [piece.to_json() for piece in status.pieces]
        order = {"path": file.path, "size": file.size, "requests": pieces}
        answer = await host.carry_out("upload", order, further_seconds=slowest_seconds(file.size))
        status = await _settle(status, answer, job_bucket)
        if not status.is_done and len(status.pieces) >= left:
            break
    if not status.is_done:
        raise DeliveryBusy(f"the upload of {file.path} is not complete: {len(status.pieces)} parts are missing")


async def _settle(status: UploadStatus, answer: Mapping[str, Any], job_bucket: JobBucket) -> UploadStatus:
    """Check what arrived, without trusting the machine; its answer only explains a failure."""
    try:
        return await job_bucket.call(job_bucket.tickets.settle, status.ticket.id)
    except TicketRefused as problem:
        if answer.get("ok"):
            raise DeliveryRefused(f"{status.ticket.path}: {problem}") from None
        raise upload_problem(answer) from None


async def _send_via_api(file: OutputFile, job: Job, host: Host, job_bucket: JobBucket, key: str) -> bool:
    """Let the machine upload the file through our HTTP API; False if it could not reach the API."""
    token = secrets.token_urlsafe(32)
    ticket = await _open_ticket(file, job, host, job_bucket, key, token=token)
    door = f"{str(job_bucket.public_url).rstrip('/')}/api/uploads/{ticket}"
    order = {"path": file.path, "size": file.size, "door": door, "token": token}
    answer = await host.carry_out("upload", order, further_seconds=slowest_seconds(file.size))
    if not answer.get("ok"):
        if await job_bucket.call(job_bucket.tickets.is_unused, ticket):
            return False
        # Retry even after a refusal: the machine may have lost the only answer to its ticket; a new ticket helps.
        raise upload_problem({**answer, "refused": False})
    # The machine's answer is not trusted.
    if not await _is_stored(file, job_bucket, key):
        raise DeliveryRefused(f"{file.path} is not in the bucket, although the machine reported success")
    return True


async def _is_stored(file: OutputFile, job_bucket: JobBucket, key: str) -> bool:
    assert file.sha256 is not None
    found = await job_bucket.call(job_bucket.bucket.holds, key, size=file.size, sha256=file.sha256)
    return found is not None


def slowest_seconds(size: int) -> float:
    """Seconds that a slow connection needs for that many bytes, beyond the timeout of any order."""
    return size / _SLOWEST_BYTES_PER_SECOND


def upload_problem(answer: Mapping[str, Any]) -> DeliveryError:
    """The error for a failed upload by the machine, with its own reason."""
    problem = f"the machine's upload failed: {answer.get('problem') or 'no reason given'}"
    if answer.get("refused"):
        return DeliveryRefused(problem)
    after = answer.get("retry_after")
    return DeliveryBusy(problem, retry_after_seconds=float(after) if isinstance(after, int | float) else None)
