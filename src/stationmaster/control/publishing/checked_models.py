"""Home's own look at a model that the machine put somewhere: the machine chose both its bytes and its hash."""

from __future__ import annotations

from pathlib import PurePosixPath

from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.destinations.job_bucket import bucket_key
from stationmaster.control.destinations.places import HUB
from stationmaster.delivery.safetensors_header import require_safetensors
from stationmaster.errors import BrokenModel, DeliveryError
from stationmaster.event_log import get_logger
from stationmaster.model import Job, OutputFile, Place
from stationmaster.recipes.outputs import is_safe_to_load

log = get_logger("stationmaster.delivering")


async def require_model(file: OutputFile, place: Place, job: Job, destinations: Destinations) -> None:
    """Check by two short reads there that the file begins as a model does; one that does not is removed from there.

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
        await _remove(file, place, job, destinations)
        raise


async def _remove(file: OutputFile, place: Place, job: Job, destinations: Destinations) -> None:
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
