"""What only home knows of a run, under the keys of RunInfo: the price, the dataset, how long it took to get there."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.control.states.executing.vitals import clock_ahead_seconds
from stationmaster.errors import StationmasterError
from stationmaster.model import Event, Job, Reason, State
from stationmaster.recipes.registry import find
from stationmaster.station.local.history import LocalEvents
from stationmaster.station.local.installation import Installation

_BY_USER = (Reason.STOPPED_BY_USER, Reason.CANCELLED_BY_USER)
_ENDED = ("done", "failed", "stopped")


def facts_of_job(installation: Installation, job: Job) -> dict[str, str]:
    """The facts of a job's run; what is not known is left out. Times are seconds since 1970 by our clock."""
    events = LocalEvents(installation).of_job(job.id)
    started = next((event for event in events if event.kind == "training_started"), None)
    found: dict[str, object | None] = {
        "framework": _framework(installation, job),
        "stopped_by": "user" if job.reason in _BY_USER else None,
        "started_at": None if started is None else started.at,
        "ended_at": None if started is None else _ended_at(events, str(started.payload.get("step"))),
        "exit_code": None if started is None else _exit_code(events, str(started.payload.get("step"))),
        "clock_offset_seconds": clock_ahead_seconds(job),
        "total_steps": job.progress.total_steps or job.spec.parameters.get("steps"),
        "price_per_hour_usd": _price(installation, job),
        "dataset_images": job.spec.dataset.images or None,
        "dataset_bytes": job.spec.dataset.size or None,
        "provisioning_seconds": _seconds_in(State.PROVISIONING, events),
        "transfer_seconds": _seconds_in(State.TRANSFERRING_DATA, events),
    }
    return {key: str(value) for key, value in found.items() if value is not None}


def _framework(installation: Installation, job: Job) -> str | None:
    try:
        recipe = find(job.spec.recipe, folders=installation.settings.recipes).recipe
    except StationmasterError:  # a recipe that was removed since
        return None
    return None if recipe.framework == "auto" else recipe.framework


def _ended_at(events: Sequence[Event], step: str) -> float | None:
    """When the training step was last seen to end; else when the job left the state in which it ran."""
    ends = [event.at for event in events if _is_end_of(event, step)]
    left = [
        event.at for event in events if event.kind == "state" and event.payload.get("from") == State.EXECUTING.value
    ]
    return max(ends or left, default=None)


def _exit_code(events: Sequence[Event], step: str) -> object | None:
    codes = [event.payload.get("exit_code") for event in events if _is_end_of(event, step)]
    return codes[-1] if codes else None


def _is_end_of(event: Event, step: str) -> bool:
    return event.kind == "step" and event.payload.get("step") == step and event.payload.get("state") in _ENDED


def _price(installation: Installation, job: Job) -> float | None:
    """What the machine cost per hour while it ran: the sum of its lines in the last rental."""
    lines = installation.store.costs.of_job(job.id)
    if not lines:
        return None
    last = max(lines, key=lambda line: line.started_at).rental_label
    return sum(line.rate_per_hour for line in lines if line.rental_label == last) / 1_000_000


def _seconds_in(state: State, events: Sequence[Event]) -> float | None:
    """How long the job was in a state the last time."""
    entered: float | None = None
    seconds: float | None = None
    for event in events:
        if event.kind != "state":
            continue
        if event.payload.get("to") == state.value:
            entered = event.at
        elif event.payload.get("from") == state.value and entered is not None:
            seconds, entered = event.at - entered, None
    return seconds
