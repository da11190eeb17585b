"""A job's model as a row of the catalogue."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.delivery.model_card import family_of
from stationmaster.lifecycle import REASONS
from stationmaster.model import Job, Outcome, Place, Reason, SamplePicture, TrainedModel
from stationmaster.model.catalogue import HOME


def slug_of(job: Job, *, installation: str) -> str:
    """The model's own name in links: the job's, and six digits that no other job of any installation should have.

    >>> from types import SimpleNamespace as Some
    >>> slug_of(Some(id="7f3k2q9a", spec=Some(name="My Cats!")), installation="ab12cd34")
    'my-cats-f715d9'
    """
    words = re.sub(r"[^a-z0-9]+", "-", job.spec.name.lower()).strip("-")[:60].strip("-")
    digits = hashlib.sha256(f"{installation}/{job.id}".encode()).hexdigest()[:6]
    return f"{words or 'model'}-{digits}"


def base_model_of(job: Job) -> str | None:
    base = job.spec.parameters.get("base_model")
    return base if isinstance(base, str) and base else None


def is_complete(reason: Reason) -> bool:
    return REASONS[reason].outcome is Outcome.COMPLETED


def entry_of(
    job: Job, reason: Reason, *, slug: str, framework: str | None, previews: tuple[SamplePicture, ...], now: float
) -> TrainedModel | None:
    """The job's row in the catalogue; None when it left no model."""
    file, model = job.model.file, job.model.address
    if file is None or model is None:
        return None
    at_home = (Place(kind=HOME, address=model),) if "://" not in model else ()
    return TrainedModel(
        slug=slug,
        job_id=job.id,
        name=job.spec.name,
        recipe=job.spec.recipe,
        file_name=file.name,
        sha256=file.sha256,
        size=file.size,
        complete=is_complete(reason),
        created_at=now,
        family=family_of(job.spec.recipe, base_model_of(job)),
        trigger=job.spec.trigger,
        base_model=base_model_of(job),
        dataset_sha256=job.spec.dataset.sha256,
        owner=job.spec.owner,
        details=_details(job, reason, framework),
        places=(*at_home, *notes.places(job)),
        previews=previews,
    )


def _details(job: Job, reason: Reason, framework: str | None) -> dict[str, Any]:
    progress, saved, wanted = job.progress, job.model.step, job.spec.parameters.get("steps")
    return {
        "framework": framework,
        "parameters": dict(job.spec.parameters),
        "images": job.spec.dataset.images,
        "steps": saved if saved is not None else progress.step,
        "target_steps": progress.total_steps or (wanted if isinstance(wanted, int) else None),
        "first_loss": progress.first_loss,
        "last_loss": progress.finite_loss,
        "reason": reason.value,
        "anomalies": list(job.watching.anomalies),
        "not_published": dict(notes.delivery_of(job).failed),
    }
