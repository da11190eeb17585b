"""Requests that are submitted at once: their idempotency keys, and what keeps their job from starting."""

from __future__ import annotations

import dataclasses
import hashlib
import json

from stationmaster.errors import KeyReused, NotFound, UserError
from stationmaster.model import MachineWish
from stationmaster.settings import Settings
from stationmaster.station.proposals import TrainRequest
from stationmaster.store.store import Store

_LONGEST_KEY = 200


def claim_job_id(store: Store, request: TrainRequest, *, key: str, user: str, job_id: str) -> str:
    """The id of the job that belongs to the key: `job_id` on its first use.

    Raises KeyReused if the key belongs to another request, NotFound if its job was removed.
    """
    if not 1 <= len(key) <= _LONGEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        raise UserError(
            f"an idempotency key has 1 to {_LONGEST_KEY} visible ASCII characters", hint="use a new UUID per request"
        )
    claimed = store.submissions.claim(user, _sha256(key), body_sha256=_sha256(_canonical(request)), job_id=job_id)
    if claimed.body_sha256 != _sha256(_canonical(request)):
        raise KeyReused(
            "this idempotency key was used for another request", hint="use a new key for a request that differs"
        )
    if claimed.submitted_at is not None and store.jobs.several([claimed.job_id]) == {}:
        raise NotFound(f"job {claimed.job_id}, which this key made, was removed", hint="use a new key to train again")
    return claimed.job_id


def worker_notes(settings: Settings) -> tuple[str, ...]:
    """What to know about the worker of this home; nothing on PostgreSQL, whose workers may run anywhere."""
    if not settings.uses_sqlite:
        return ()
    from stationmaster.control.worker.background import running_worker

    if running_worker(settings.home) is not None:
        return ()
    return ("no worker is running: the job starts when one does (`stationmaster worker`)",)


def _canonical(request: TrainRequest) -> str:
    """The request in one spelling, whatever the order of its names was."""
    data = dataclasses.asdict(request)
    # Keys of before requests could have these must stay what they were.
    if request.machine.gpus is None:
        del data["machine"]["gpus"]
    if request.machine == MachineWish():
        del data["machine"]
    if request.offer is None:
        del data["offer"]
    return json.dumps(data, sort_keys=True, default=str)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
