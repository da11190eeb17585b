"""The machine uploads its model to the first destination that works: the Hub, else the bucket. Verified from here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.destinations.job_bucket import bucket_key, send_from_machine
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import recovered, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import access_of, host_of, may_get_secrets
from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.control.publishing.catalogue import slug_of
from stationmaster.control.publishing.machine_source import MachineSource
from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.huggingface import HubClient
from stationmaster.delivery.safetensors_header import require_safetensors
from stationmaster.errors import BrokenModel, CommandFailed, DeliveryBusy, DeliveryError, DeliveryRefused, TicketRefused
from stationmaster.event_log import get_logger
from stationmaster.model import Checkpoint, Job, OutputFile, Place
from stationmaster.model.catalogue import BUCKET, HUB
from stationmaster.recipes.outputs import is_safe_to_load
from stationmaster.store.writes import NewEvent, Write

log = get_logger("stationmaster.publishing")

_LONGEST_WAIT_SECONDS = 60.0  # a destination that asks for more is skipped: the machine costs meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """The machine uploads the model to one destination; what is there already is not sent again."""

    link: str
    file: OutputFile


async def deliver(action: Deliver, job: Job, checkpoint: Checkpoint, visit: Visit, world: World) -> Write:
    """Upload the model to that destination; on failure retry it, or go on with the next one.

    Raises Unreachable: a machine that does not answer is no failure of the destination; and BrokenModel.
    """
    try:
        _require_trusted(job, world.policy)
        place = await (_to_hub if action.link == HUB else _to_bucket)(action.file, job, world)
        await require_model(action.file, place, job, world.destinations)
    except (DeliveryError, CommandFailed, TicketRefused) as problem:
        return not_delivered(job, action.link, problem, world.policy)
    safe = replace(checkpoint, location=place.address, verified_at=visit.now)
    after = notes.with_place(recovered(job), place)
    after = notes.with_model(after, action.file, address=place.address, step=safe.step)
    payload = {"path": action.file.path, "location": place.address, "sha256": safe.sha256, "size": safe.size}
    return wait(after, 0.0, checkpoints=(safe,), events=(NewEvent(kind="model_safe", payload=payload),))


def not_delivered(job: Job, what: str, problem: Exception, policy: Policy) -> Write:
    """Retry, or after a refusal or the last try give this destination up with an event that gives the reason."""
    after, before = notes.with_try(job, what)
    pause = policy.retry_after(before)
    if isinstance(problem, DeliveryBusy) and problem.retry_after_seconds is not None:
        pause = max(pause, problem.retry_after_seconds)
    is_over = isinstance(problem, DeliveryRefused) or before + 1 >= notes.TRIES or pause > _LONGEST_WAIT_SECONDS
    if not is_over:
        return wait(after, pause)
    event = NewEvent(kind="delivery_failed", payload={"place": what, "problem": str(problem)})
    return wait(notes.with_failure(after, what, str(problem)), 0.0, events=(event,))


async def repository_of(job: Job, hub: HubClient, *, installation: str) -> str:
    """The model's repository, created if missing and private where that is set."""
    repo = f"{await hub.namespace()}/{slug_of(job, installation=installation)}"
    await hub.ensure_repository(repo)
    return repo


def hub_place(repo: str, name: str, hub: HubClient) -> Place:
    return Place(kind=HUB, address=f"hf://{repo}/{name}", link=f"{hub.url}/{repo}", public=not hub.private)


def _require_trusted(job: Job, policy: Policy) -> None:
    if not may_get_secrets(access_of(job), policy):
        raise DeliveryRefused("the machine's host key is not verified, so no signed URL may go there")


async def _to_hub(file: OutputFile, job: Job, world: World) -> Place:
    hub = world.destinations.hub
    assert hub is not None, "a link that is set has its client"
    assert file.sha256 is not None
    repo = await repository_of(job, hub, installation=world.store.installation_id)
    name = PurePosixPath(file.path).name
    sent = HubFile(name=name, size=file.size, sha256=file.sha256)
    source = MachineSource(file, host_of(job, world))
    await hub.require(repo, [await hub.put_from(repo, sent, source, message=f"{name}, job {job.id}")])
    return hub_place(repo, name, hub)


async def _to_bucket(file: OutputFile, job: Job, world: World) -> Place:
    job_bucket = world.destinations.bucket
    assert job_bucket is not None, "a link that is set has its client"
    return Place(kind=BUCKET, address=await send_from_machine(file, job, host_of(job, world), job_bucket))


async def require_model(file: OutputFile, place: Place, job: Job, destinations: Destinations) -> None:
    """Check by two short reads there that the file begins as a model does; one that does not is removed from there.

    The machine chose both the bytes and the hash that they were verified against, so neither proves a model.

    Raises BrokenModel, and DeliveryError where it cannot be read.
    """
    if not is_safe_to_load(file.path):
        return

    async def read(start: int, size: int) -> bytes:
        if place.kind == HUB:
            assert destinations.hub is not None
            return await destinations.hub.read_range(place.address, start=start, size=size)
        assert destinations.bucket is not None
        bucket = destinations.bucket.bucket
        return await destinations.bucket.call(bucket.read_range, bucket_key(job, file.path), start=start, size=size)

    try:
        await require_safetensors(PurePosixPath(file.path).name, file.size, read)
    except BrokenModel:
        await _remove_broken(file, place, job, destinations)
        raise


async def _remove_broken(file: OutputFile, place: Place, job: Job, destinations: Destinations) -> None:
    """Remove it, so that it is not taken for a model. A file that stays is still in no catalogue."""
    try:
        if place.kind == HUB:
            assert destinations.hub is not None
            await destinations.hub.remove(place.address)
        else:
            assert destinations.bucket is not None
            await destinations.bucket.call(destinations.bucket.artifacts.remove, bucket_key(job, file.path))
    except DeliveryError as problem:
        log.warning("broken_model.not_removed", job=job.id, place=place.address, problem=str(problem))
