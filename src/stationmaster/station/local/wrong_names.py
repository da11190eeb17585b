"""Errors for names that are not in the store, with the names that may have been meant.

`owner` limits both: a user's typing error reveals no name of another user.
"""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import NotFound
from stationmaster.model import SINGLE_USER, Job
from stationmaster.near_names import did_you_mean
from stationmaster.store.store import Store

_NEWEST = 500  # jobs whose names are compared


def no_such_job(store: Store, reference: str, *, owner: str | None = None) -> NotFound:
    jobs = store.jobs.listed(with_ended=True, limit=_NEWEST, owner=owner)
    known = [*(job.spec.name for job in jobs), *(job.id for job in jobs)]
    hint = did_you_mean(reference, known) or "run `stationmaster jobs --all` to see them"
    return NotFound(f"there is no job {reference}", hint=hint)


def several_jobs(reference: str, found: Sequence[Job]) -> NotFound:
    """The text is the beginning of several ids."""
    listed = ", ".join(f"{job.id} ({job.spec.name})" for job in found[:5])
    more = ", …" if len(found) > 5 else ""
    return NotFound(f"{reference} matches the ids of {len(found)} jobs", hint=f"type more of the id: {listed}{more}")


def no_such_model(store: Store, reference: str, *, owner: str | None = None) -> NotFound:
    models = store.models.listed(owner=owner, limit=_NEWEST)
    known = [*(model.slug for model in models), *(model.name for model in models)]
    hint = did_you_mean(reference, known) or "run `stationmaster models list` to see them"
    return NotFound(f"there is no model {reference}", hint=hint)


def no_such_user(store: Store, name: str, *, added: bool = False, otherwise: str | None = None) -> NotFound:
    """`added`: the single user of the settings is not meant. `otherwise` is the hint if no name is near."""
    known = [*([] if added else [SINGLE_USER]), *(user.name for user in store.users.listed())]
    hint = did_you_mean(name, known) or otherwise or "run `stationmaster users list` to see them"
    return NotFound(f"there is no user {name}", hint=hint)
