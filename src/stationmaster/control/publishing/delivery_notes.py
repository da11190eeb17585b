"""Which steps of a delivery are done, noted with the job so that any worker can go on. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from stationmaster.lifecycle import CONTINUED
from stationmaster.model import Desired, Job, ModelDelivery, ModelFile, OutputFile, Place
from stationmaster.model.copying import changed

TRIES = 3
"""Tries of a destination, or of a further step of publishing, before the next one."""


def next_link(job: Job, links: tuple[str, ...]) -> str | None:
    """Where the machine should upload the model now; None when only the download is left, or it is safe already."""
    if places(job) or job.desired is Desired.CANCEL_KEEP or job.ending.reason in CONTINUED:
        return None  # what is only kept, or continued by another attempt, is not published
    return next((link for link in links if not has_failed(job, link)), None)


def delivery_of(job: Job) -> ModelDelivery:
    """The delivery of this attempt; that of an earlier attempt does not count."""
    known = job.model.delivery
    return known if known is not None and known.attempt == job.attempt else ModelDelivery(attempt=job.attempt)


def places(job: Job) -> tuple[Place, ...]:
    """Where this attempt's model is, verified, besides this computer."""
    return delivery_of(job).places


def with_model(job: Job, file: OutputFile, *, address: str, step: int | None) -> Job:
    """The job whose model, that file of its machine, is safe at `address`."""
    assert file.sha256 is not None, "only what was hashed is brought to safety"
    known = ModelFile(name=PurePosixPath(file.path).name, sha256=file.sha256, size=file.size, path=file.path)
    return changed(job, model=changed(job.model, address=address, step=step, attempt=job.attempt, file=known))


def with_place(job: Job, place: Place) -> Job:
    known = delivery_of(job)
    others = (one for one in known.places if one.kind != place.kind)
    return with_delivery(job, changed(known, places=(*others, place)))


def with_failure(job: Job, what: str, problem: str) -> Job:
    """The job with a destination or step given up."""
    known = delivery_of(job)
    return with_delivery(job, changed(known, failed={**known.failed, what: problem}))


def has_failed(job: Job, what: str) -> bool:
    return what in delivery_of(job).failed


def with_try(job: Job, what: str) -> tuple[Job, int]:
    """The job with one more try counted, and the number of tries before."""
    known = delivery_of(job)
    before = known.tries.get(what, 0)
    return with_delivery(job, changed(known, tries={**known.tries, what: before + 1})), before


def is_done(job: Job, what: str) -> bool:
    return what in delivery_of(job).done


def with_done(job: Job, what: str) -> Job:
    known = delivery_of(job)
    return with_delivery(job, changed(known, done=(*known.done, what)))


def with_delivery(job: Job, delivery: ModelDelivery) -> Job:
    return changed(job, model=changed(job.model, delivery=delivery))
