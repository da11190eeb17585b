"""What a person asks a running training for: a checkpoint or samples now. It goes on afterwards.

The asking is counted in the job; what was answered, and what is being waited for, is kept with it. A worker that goes
on after a crash makes the same request, which trackside passes on once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import host_of
from stationmaster.control.results.checkpoint_collection import with_newest_wanted
from stationmaster.control.results.declared_files import has_safe_name
from stationmaster.control.results.sample_collection import MOST_FILES, download_samples
from stationmaster.errors import CommandFailed, DiskFull, TransferFailed
from stationmaster.model import Checkpoint, Job, PendingRequest, Request, Requests
from stationmaster.parsers.quotes import quoted
from stationmaster.recipes.outputs import output_of
from stationmaster.recipes.schema import Output, OutputKind, Recipe
from stationmaster.remote.host import Host, RequestState
from stationmaster.store.writes import NewEvent, Write

_LOOK_SECONDS = 2.0  # how long the first visit waits for the answer
_AGAIN_SECONDS = 3.0  # between two looks
_SPARE_SECONDS = 60.0  # beyond the recipe's timeout, for a machine that never reports it
_IN_PROGRESS = ("saving", "sampling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Send a user's request to the training, or check its result."""

    request: Request
    number: int


def next_request(job: Job, *, now: float) -> Ask | None:
    """The request to send or check now. Before its first step a training may not be able to answer."""
    if not job.progress.step:
        return None
    if (pending := _pending(job)) is not None:
        is_due = now - pending.looked_at >= _AGAIN_SECONDS
        return Ask(request=pending.request, number=pending.number) if is_due else None
    unanswered = (one for one in Request if job.times_asked(one) > _answered(job, one))
    return next((Ask(request=one, number=job.times_asked(one)) for one in unanswered), None)


async def ask(action: Ask, job: Job, visit: Visit, world: World) -> Write:
    """Ask once, check the result, and download the samples that it made. Raises RemoteError."""
    host, now = host_of(job, world), visit.now
    pending = _pending(job) or PendingRequest(
        request=action.request, number=action.number, at=now, attempt=job.attempt, looked_at=now
    )
    name = f"attempt-{job.attempt}-{action.request.value}-{action.number}"
    first_look = _LOOK_SECONDS if pending.at == now else 0.0
    found = await _pass_on(host, action.request, name, first_look)
    seconds = _most_seconds(action.request, visit.recipe) + _SPARE_SECONDS
    if more_to_come(found, pending, step=job.progress.step) and now - pending.at < seconds:
        asking = replace(after_look(pending, found, step=job.progress.step), looked_at=now)
        after = replace(job, requests=replace(job.requests, pending=asking))
        return wait(after, 0.0 if visit.watched else _AGAIN_SECONDS)
    return await _finish_request(found, action, job, visit, world)


def more_to_come(found: RequestState, pending: PendingRequest, *, step: int | None) -> bool:
    """Whether more is to come. The first of several samples exists before the last: all do once it trains again."""
    if found.state in _IN_PROGRESS:
        return True
    first_seen = pending.made_at_step
    return found.state == "sampled" and (first_seen is None or step == first_seen)


def after_look(pending: PendingRequest, found: RequestState, *, step: int | None) -> PendingRequest:
    """The request after a look, with the step at which its first result existed."""
    if pending.made_at_step is None and found.state not in _IN_PROGRESS:
        return replace(pending, made_at_step=step)
    return pending


async def _pass_on(host: Host, request: Request, name: str, wait_seconds: float) -> RequestState:
    try:
        if request is Request.SAVE:
            return await host.save(name, wait_seconds=wait_seconds)
        return await host.sample(name, wait_seconds=wait_seconds)
    except CommandFailed as problem:  # e.g. from an older trackside without this verb
        return RequestState(state="refused", problem=str(problem))


def _most_seconds(request: Request, recipe: Recipe) -> float:
    how = recipe.stop.save if request is Request.SAVE else recipe.samples and recipe.samples.now
    return 0.0 if how is None else how.timeout


async def _finish_request(found: RequestState, action: Ask, job: Job, visit: Visit, world: World) -> Write:
    """Record the answer, and download the samples that the request made."""
    kind = f"{action.request.value}_ended"
    state = "timed_out" if found.state in _IN_PROGRESS else quoted(found.state)
    files = [path for path in found.files if has_safe_name(path)][-MOST_FILES:]  # the machine chooses these names
    payload: dict[str, Any] = {"state": state, "number": action.number, "files": files}
    if found.problem:
        payload["problem"] = quoted(found.problem)
    rows: list[Checkpoint] = []
    if action.request is Request.SAMPLE and files:
        try:
            samples = [path for path in files if _is_sample(path, visit.recipe.outputs)]
            await download_samples(samples, job, visit, visit.recipe.outputs, world, rows)
        except (TransferFailed, DiskFull) as problem:
            payload["problem"] = str(problem)
        payload["places"] = [row.location for row in rows]
    answered = {**job.requests.answered, action.request.value: action.number}
    after = replace(job, requests=Requests(answered=answered))
    if action.request is Request.SAVE and files:
        after = with_newest_wanted(after, now=visit.now)
    return wait(after, 0.0, checkpoints=tuple(rows), events=(NewEvent(kind=kind, payload=payload),))


def _is_sample(path: str, outputs: Sequence[Output]) -> bool:
    output = output_of(path, outputs)
    return output is not None and output.kind is OutputKind.SAMPLE


def _pending(job: Job) -> PendingRequest | None:
    """The request that waits for its result; one of an earlier attempt was lost with its machine and is sent again."""
    pending = job.requests.pending
    return pending if pending is not None and pending.attempt == job.attempt else None


def _answered(job: Job, request: Request) -> int:
    return job.requests.answered.get(request.value, 0)
