"""EXECUTING: trackside runs the plan's steps, detached. Each visit reads its status once and decides on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from stationmaster.control.flow.deciding import decided
from stationmaster.control.flow.kept_checkpoints import checkpoint_note
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Handler, Step, cut_off, give_up, go_on, is_late, recovered, wait, with_fault
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import drop_connection, host_of
from stationmaster.control.machine.closing_time import (
    closing_begun,
    closing_counted,
    is_stopped_for_good,
    look_is_due,
    stop_is_over,
    stop_limit,
    stop_seconds_left,
)
from stationmaster.control.machine.keepalive import alone_seconds
from stationmaster.control.machine.letting_go import is_only_left
from stationmaster.control.machine.revive import STOPPED_ENDINGS, Revive, marked_as_stopped, needs_reviving, revive
from stationmaster.control.machine.sight import ANSWERING, Fate, missed, sight
from stationmaster.control.machine.step_secrets import held_back, secrets_of
from stationmaster.control.results.checkpoint_collection import Collect, collect, next_collection
from stationmaster.control.results.declared_files import declared
from stationmaster.control.results.sample_collection import CollectSamples, collect_samples, next_samples
from stationmaster.control.states.executing.adopted_end import adopted_end, adopted_end_event
from stationmaster.control.states.executing.comparison import compare, comparison_due
from stationmaster.control.states.executing.dense_log import takes_long
from stationmaster.control.states.executing.last_save import Save, ask_to_save, save_events, save_first
from stationmaster.control.states.executing.live_stream import Follow, follow
from stationmaster.control.states.executing.log_watch import since_of
from stationmaster.control.states.executing.status_intake import ExecutingView, status_write
from stationmaster.control.states.executing.step_failure import failure_explanation
from stationmaster.control.states.executing.training_events import end_events
from stationmaster.control.states.executing.user_requests import Ask, ask, next_request
from stationmaster.errors import (
    CommandFailed,
    DeliveryBusy,
    HostKeyRefused,
    MachineFault,
    RemoteError,
    SecretRefused,
)
from stationmaster.lifecycle import Move
from stationmaster.model import Desired, Job, Reason
from stationmaster.model.copying import changed
from stationmaster.recipes.log_patterns import user_patterns
from stationmaster.recipes.schema import Output
from stationmaster.remote.status import Status
from stationmaster.store.writes import NewEvent, Write

# A reason to stop becomes another one before the training: a stop is a cancel, and a stopped machine holds no model.
_BEFORE_TRAINING = {Reason.STOPPED_BY_USER: Reason.CANCELLED_BY_USER, Reason.MACHINE_STOPPED: Reason.MACHINE_LOST}
_MOST_STOPS = 4  # each ends with SIGKILL: a process that survives these also survives another
_SETTLE_SECONDS = 0.1  # a supervisor that dies at once is not restarted in a tight loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start trackside, or start it again: it does not run although the plan is not finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop the training. The reason is already recorded."""

    grace_seconds: float


Action = Start | Save | Stop | Revive | Follow | Collect | CollectSamples | Ask


async def observe(visit: Visit, world: World) -> ExecutingView:
    job = visit.job
    recipe = visit.recipe
    view = ExecutingView(
        visit=visit,
        status=None,
        framework=recipe.framework,
        patterns=user_patterns((*recipe.log_patterns, *world.policy.logs.patterns)),
        outputs=recipe.outputs,
        stopping=recipe.stop,
        tries={step.name: step.tries for step in recipe.steps},
    )
    if job.desired is Desired.CANCEL:
        return view
    try:
        since = since_of(job, visit.monitoring)
        status = await host_of(job, world).status(since, alone_seconds=alone_seconds(job, now=visit.now))
        # Only the provider knows whether the machine of a job that is to end still bills, and so whether its time runs.
        is_due = look_is_due(job, world.policy, now=visit.now)
        sighting = await sight(visit, world) if is_due else ANSWERING
        view = changed(view, status=status, sighting=sighting)
        return changed(view, watched=visit.watched, comparison=await compare(job, world))
    except RemoteError as problem:
        await drop_connection(job, world)
        is_false = isinstance(problem, MachineFault)
        return changed(view, problem=str(problem), is_false=is_false, sighting=await sight(visit, world))


def decide(view: ExecutingView, policy: Policy) -> Step[Action]:
    job, now = view.visit.job, view.visit.now
    if job.desired is Desired.CANCEL:
        return _give_up(view, Reason.CANCELLED_BY_USER, "cancelled during the training")
    view = _with_closing_time(view, policy)
    if view.status is None:
        return _without_answer(view, policy)
    status = view.status
    write = status_write(view, status)
    job = write.job
    # Requests of the user and the limit come first: nothing that the machine reports can delay them.
    if reason := _reason_to_stop(job, now=now):
        return _stop_training(view, changed(write, job=closing_begun(job, now=now)), status, reason, policy)
    if _has_more(write, status):
        return Step(write=changed(write, due_in=0.0))
    if status.finished:
        return Step(write=_exited(write, status, view.outputs, now=now))
    if not status.supervisor.alive or status.needs_secrets:
        return Step(write=write, then=Start())
    if status.training_alive and (request := next_request(job, now=now)):
        return Step(write=write, then=request)
    if collection := next_collection(job, status, before=view.visit.job, policy=policy, now=now):
        return Step(write=write, then=collection)
    if samples := next_samples(job, status, policy=policy, now=now):
        return Step(write=write, then=samples)
    if view.watched and status.training_alive:
        return Step(write=write, then=Follow())
    return Step(write=write)


def _with_closing_time(view: ExecutingView, policy: Policy) -> ExecutingView:
    """The same view, with the closing time counted and only the files that the recipe declares."""
    job = closing_counted(view.visit.job, view.sighting, policy, now=view.visit.now)
    status = view.status
    if status is not None:
        status = changed(status, outputs=declared(status.outputs, view.outputs))
    return changed(view, visit=changed(view.visit, job=job), status=status)


def _has_more(write: Write, status: Status) -> bool:
    """Whether log and series are to be read further before anything is concluded from them."""
    return status.more or bool(status.finished and (write.logs or write.series))


def _stop_training(view: ExecutingView, write: Write, status: Status, reason: Reason, policy: Policy) -> Step[Action]:
    """Stop the training. If that fails, leave it running and download its model anyway."""
    is_over = stop_is_over(write.job, policy)
    if write.job.spec.adopted is not None and not _training_began(status) and not status.finished and not is_over:
        return Step(write=write, then=Start())  # it runs for long: it is stopped, or left, as soon as it is watched
    if is_only_left(write.job) and not _has_more(write, status):
        return Step(write=_left_alone(write, reason, view))
    if is_over or write.job.ending.stops >= _MOST_STOPS:
        return Step(write=_leave_running(write, reason, view))
    if status.finished:
        if _has_more(write, status):
            return Step(write=changed(write, due_in=0.0))
        return Step(write=_exited(write, status, view.outputs, now=view.visit.now))
    if not _training_began(status):
        return _give_up(view, _BEFORE_TRAINING.get(reason, reason), "stopped before the training started")
    return _save_or_stop(view, write, reason, policy)


def _left_alone(write: Write, reason: Reason, view: ExecutingView) -> Write:
    """The job ends and the training goes on; what it has saved so far is downloaded."""
    job = changed(recovered(write.job), ending=changed(write.job.ending, reason=reason))
    moved = go_on(job, Move.EXITED, now=view.visit.now, events=write.events)
    return changed(write, job=moved.job, due_in=0.0, events=moved.events)


def _leave_running(write: Write, reason: Reason, view: ExecutingView) -> Write:
    """The stop had no effect or no answer: FETCHING_RESULTS asks once more, and the machine is destroyed after it."""
    ending = changed(write.job.ending, reason=reason, unstopped=True, stops=0)
    job = changed(recovered(write.job), ending=ending)
    event = NewEvent(kind="stop_without_effect", payload={"reason": reason.value})
    moved = go_on(job, Move.EXITED, now=view.visit.now, events=(*write.events, event, *end_events(job, view.outputs)))
    return changed(write, job=moved.job, due_in=0.0, events=moved.events)


def _save_or_stop(view: ExecutingView, write: Write, reason: Reason, policy: Policy) -> Step[Action]:
    """Have the training save, if it can, then stop it. Each is recorded before it is done."""
    job = changed(write.job, ending=changed(write.job.ending, reason=reason))
    saving = save_first(job, reason, view.stopping.save, view.visit.monitoring, now=view.visit.now)
    if saving is None:
        job = changed(job, ending=changed(job.ending, stops=job.ending.stops + 1))
        grace = min(view.stopping.grace, stop_limit(policy))
        return Step(write=changed(write, job=job), then=Stop(grace_seconds=grace))
    events = (*write.events, *save_events(job, saving))
    return Step(write=changed(write, job=saving, events=events), then=Save())


def _give_up(view: ExecutingView, reason: Reason, explanation: str) -> Step[Action]:
    return Step(write=give_up(view.visit.job, reason, now=view.visit.now, explanation=explanation))


def _without_answer(view: ExecutingView, policy: Policy) -> Step[Action]:
    """Silence proves nothing: only the provider can report that the machine, and so the training, is gone."""
    job, sighting = view.visit.job, view.sighting
    if sighting.fate is Fate.GONE:
        return _give_up(
            view, Reason.MACHINE_LOST, f"the provider reports that the machine is gone{checkpoint_note(job)}"
        )
    if view.is_false:
        job = with_fault(job, view.problem or "")
        if job.machine.fault is not None:
            return Step(write=_end_at_fault(job, view))
    if reason := _reason_to_stop(job, now=view.visit.now):
        job = closing_begun(job, now=view.visit.now)
        if stop_is_over(job, policy) or is_stopped_for_good(job, policy):
            return Step(write=_leave_running(Write(job=job), reason, view))
    if needs_reviving(sighting, job):
        stopped = marked_as_stopped(job, sighting)
        since = job.unreachable_since if job.unreachable_since is not None else view.visit.now
        return Step(write=Write(job=changed(stopped, unreachable_since=since)), then=Revive(sighting=sighting))
    if sighting.fate is Fate.MISSING:
        job = missed(job, sighting)
    return Step(write=cut_off(job, now=view.visit.now, policy=policy, problem=view.problem or "no answer"))


def _end_at_fault(job: Job, view: ExecutingView) -> Write:
    """The machine's answers are false: download what it has, for another machine to continue from."""
    now = view.visit.now
    job = recovered(closing_begun(job, now=now))
    explanation = f"the machine's answers are false: {job.machine.fault}"
    ending = changed(job.ending, reason=Reason.MACHINE_FAULT, explanation=explanation, unstopped=True, stops=0)
    job = changed(job, ending=ending)
    events = (NewEvent(kind="machine_fault", payload={"problem": job.machine.fault}), *end_events(job, view.outputs))
    return changed(go_on(job, Move.EXITED, now=now, events=events), due_in=0.0)


def _reason_to_stop(job: Job, *, now: float) -> Reason | None:
    if job.ending.reason in STOPPED_ENDINGS:
        return job.ending.reason  # the machine runs again only for its model to be downloaded
    if job.desired is Desired.STOP:
        return Reason.STOPPED_BY_USER
    if job.desired is Desired.CANCEL_KEEP:
        return Reason.CANCELLED_BY_USER
    if job.watching.stalled:
        return Reason.STALLED
    if job.watching.sick:
        return Reason.ANOMALY
    return Reason.HARD_LIMIT if is_late(job, now=now) else None


def _training_began(status: Status) -> bool:
    return any(step.training and step.started_at is not None for step in status.steps)


def _exited(write: Write, status: Status, outputs: Sequence[Output], *, now: float) -> Write:
    assert status.finished is not None
    job = write.job
    # A training that finished did so before the stop.
    is_done = status.finished.result == "done"
    reason = Reason.FINISHED if is_done else job.ending.reason or Reason.STEP_FAILED
    explanation = failure_explanation(job, status) if reason is Reason.STEP_FAILED else None
    found: tuple[NewEvent, ...] = ()
    if job.spec.adopted is not None and reason in (Reason.FINISHED, Reason.STEP_FAILED):
        reason, explanation = adopted_end(job, status)
        found = (adopted_end_event(job, reason, explanation),)
    job = changed(recovered(job), ending=changed(job.ending, reason=reason, explanation=explanation))
    events = (*write.events, *found, *end_events(job, outputs))
    moved = go_on(job, Move.EXITED, now=now, events=events, checkpoints=write.checkpoints)
    return changed(moved, readings=write.readings, cleared_alerts=write.cleared_alerts)


async def perform(action: Action, job: Job, view: ExecutingView, world: World) -> Write:
    match action:
        case Revive():
            return await revive(action, job, view.visit, world)
        case Follow():
            return await follow(job, view.visit, world, partial(_judged, view, world))
        case Collect():
            return await collect(action, job, view.visit, view.outputs, world)
        case CollectSamples():
            return await collect_samples(action, job, view.visit, view.outputs, world)
    try:
        async with asyncio.timeout(stop_seconds_left(job, world.policy)):
            match action:
                case Save():
                    return await ask_to_save(job, world)
                case Ask():
                    return await ask(action, job, view.visit, world)
                case Stop():
                    await host_of(job, world).stop(action.grace_seconds)
                case Start():
                    await host_of(job, world).start(await secrets_of(job, view.visit.recipe, world))
    except TimeoutError:
        return _not_stopped(job, "timed out", world.policy)
    except (SecretRefused, DeliveryBusy) as problem:
        has_trained = view.status is None or _training_began(view.status)
        return held_back(job, problem, view.visit, world.policy, has_trained=has_trained)
    except RemoteError as problem:
        if isinstance(action, Stop) and isinstance(problem, CommandFailed):
            return _not_stopped(job, str(problem), world.policy)
        if not isinstance(problem, CommandFailed | HostKeyRefused):  # the connection itself is fine after these two
            await drop_connection(job, world)
        return cut_off(job, now=view.visit.now, policy=world.policy, problem=str(problem))
    earlier_stops = job.ending.stops - 1 if isinstance(action, Stop) else 0
    return wait(job, world.policy.retry_after(earlier_stops - 1) if earlier_stops else _SETTLE_SECONDS)


def _not_stopped(job: Job, problem: str, policy: Policy) -> Write:
    """The machine answers but does not stop the training: record it once, and retry after growing pauses."""
    events = (NewEvent(kind="stop_failed", payload={"problem": problem}),) if job.ending.stops == 1 else ()
    return wait(job, policy.retry_after(max(0, job.ending.stops - 1)), events=events)


async def _judged(view: ExecutingView, world: World, visit: Visit, status: Status) -> tuple[Write, bool]:
    """The same decision as in any visit; following continues while the decision is to follow."""
    step = await decided(HANDLER, changed(view, visit=visit, status=status, watched=True), world)
    assert step.write is not None, "every status leads to a write"
    reads_on = step.then is None and step.write.job.state is visit.job.state
    is_due = comparison_due(step.write.job) is not None  # then end the stream: only a visit may query the store
    return step.write, (isinstance(step.then, Follow) or reads_on) and not is_due


HANDLER = Handler(
    observe=observe,
    decide=decide,
    perform=perform,
    takes_long=lambda view: takes_long(view.visit.job, view.status),
)
