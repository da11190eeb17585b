"""RELEASING: the machine is no longer needed. Destroy it, again and again, until the provider reports it gone."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.billing.paying import with_settlement
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Handler, Step, failed_try, go_on, outcome_event, recovered, wait, wants_out
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.adoption import opened_cost, surplus_rental
from stationmaster.control.machine.letting_go import is_let_go, let_go
from stationmaster.control.machine.login import blame
from stationmaster.control.machine.release import Evidence, Judgement, Next, closed_cost, gather_evidence, judge
from stationmaster.control.results.analysing import Analyse, analysed, analysis_is_due
from stationmaster.control.states.releasing.cleanup import (
    CleanUp,
    clean_up,
    cleanup_limit,
    needs_cleanup,
    with_cleanup_begun,
)
from stationmaster.errors import ProviderError
from stationmaster.lifecycle import PARKED, Move, concluded
from stationmaster.model import (
    ADOPTED_PREFIX,
    Alert,
    BadMachine,
    CostLine,
    Job,
    Label,
    Listing,
    Machine,
    Reason,
    Rental,
    RentalState,
)
from stationmaster.model.copying import changed
from stationmaster.providers.base import CanRelabel
from stationmaster.store.writes import NewEvent, Write

_NOTHING_RENTED = Evidence(
    listing=Listing(machines=(), complete=True, account=""), single_reads={}, create_limit_seconds=0.0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasingView:
    visit: Visit
    installation: str
    rentals: tuple[Rental, ...]
    costs: tuple[CostLine, ...]
    evidence: Evidence | None = None
    problem: str | None = None
    cleanup_limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Destroy:
    """Destroy these machines; repeating it is harmless."""

    provider_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """Give these machines their own label back: their training was never watched, so it must not be ended."""

    provider_ids: tuple[str, ...]
    label: str


Action = Destroy | CleanUp | Analyse | LetGo


async def observe(visit: Visit, world: World) -> ReleasingView:
    job = visit.job
    rentals, costs = await world.bills.of(job.id)
    view = ReleasingView(
        visit=visit,
        installation=world.store.installation_id,
        rentals=rentals,
        costs=costs,
        cleanup_limit=cleanup_limit(visit, world),
    )
    if not any(_may_exist(rental) for rental in not_gone(rentals)):
        return changed(view, evidence=_NOTHING_RENTED)  # a provider that refuses us must not prevent the end of the job
    try:
        return changed(view, evidence=await gather_evidence(job.spec.provider, not_gone(rentals), world))
    except ProviderError as problem:
        return changed(view, problem=str(problem))


def _may_exist(rental: Rental) -> bool:
    """Whether a machine was ever asked for: the time of asking is recorded before anything is sent."""
    return rental.provider_id is not None or rental.create_sent_at is not None


def not_gone(rentals: tuple[Rental, ...]) -> tuple[Rental, ...]:
    return tuple(rental for rental in rentals if rental.state is not RentalState.GONE)


def decide(view: ReleasingView, policy: Policy) -> Step[Action]:
    job, now = view.visit.job, view.visit.now
    job, events = _without_further_attempt(job) if wants_out(job) else (job, ())
    if view.evidence is None:
        after, seconds, _ = failed_try(job, policy)
        return Step(write=wait(after, seconds, events=events, alerts=_release_alerts(view, policy)))
    judgements = [judge(rental, view.evidence, now=now) for rental in not_gone(view.rentals)]
    if is_let_go(job):
        judgements, labelled = let_go(judgements, view.evidence.listing, now=now)
        if labelled:
            assert job.spec.adopted is not None
            action = LetGo(provider_ids=labelled, label=job.spec.adopted.label_before)
            return Step(write=Write(job=job, events=events), then=action)
    if needs_cleanup(job, judgements, limit=view.cleanup_limit, now=now):
        return Step(write=Write(job=with_cleanup_begun(job, now=now), events=events), then=CleanUp())
    surplus = _surplus(view, judgements)
    rentals = (*(judgement.rental for judgement in judgements), *surplus)
    gone = [rental for rental in rentals if rental.state is RentalState.GONE]
    write = Write(
        job=recovered(job),
        rentals=rentals,
        costs=_costs(view, rentals, gone),
        bad_machines=_blamed(job, view.rentals),
        events=(*events, *(NewEvent(kind=_gone_kind(job), payload={"label": rental.label}) for rental in gone)),
    )
    if len(gone) == len(rentals) and analysis_is_due(job, view.visit):
        return Step(write=write, then=Analyse())
    if gone and len(gone) == len(rentals) and job.outcome is not None:
        return Step(write=changed(write, due_in=0.0))  # a stage of its own: everybody sees that the machine is gone
    if len(gone) == len(rentals):
        over = _all_gone(write, job, now=now, policy=policy)
        lines = {(line.rental_label, line.kind): line for line in (*view.costs, *write.costs)}.values()
        known = {rental.label: rental for rental in (*view.rentals, *rentals)}.values()
        return Step(write=with_settlement(over, job, lines=lines, rentals=known, policy=policy, now=now))
    doomed = [judgement.rental.provider_id for judgement in judgements if judgement.next is Next.DESTROY]
    doomed += [rental.provider_id for rental in surplus]
    alerts = _release_alerts(view, policy)
    if not doomed:
        return Step(write=changed(write, due_in=policy.provider_look_seconds, alerts=alerts))
    ids = tuple(provider_id for provider_id in doomed if provider_id is not None)
    return Step(write=changed(write, alerts=alerts), then=Destroy(provider_ids=ids))


def _blamed(job: Job, rentals: tuple[Rental, ...]) -> tuple[BadMachine, ...]:
    """The host whose answers or files were false, to be avoided."""
    if job.machine.fault is None:
        return ()
    return blame(next((rental for rental in rentals if rental.label == job.machine.label), None), job.machine.fault)


def _gone_kind(job: Job) -> str:
    """The event of a machine that is no longer the job's; one that is somebody's own goes on."""
    is_there = job.reason is not Reason.MACHINE_LOST
    is_somebodys = is_there and (job.spec.provider.startswith(ADOPTED_PREFIX) or is_let_go(job))
    return "machine_left" if is_somebodys else "rental_gone"


def _without_further_attempt(job: Job) -> tuple[Job, tuple[NewEvent, ...]]:
    """A stop or cancel between two attempts ends the job here: INCOMPLETE if a checkpoint is safe, else CANCELLED."""
    if job.outcome is not None:
        return job, ()
    is_something_safe = job.model.address or job.collection.checkpoints
    reason = Reason.STOPPED_BY_USER if is_something_safe else Reason.CANCELLED_BY_USER
    ended = concluded(job, reason, explanation="stopped on request before the next attempt")
    return ended, (outcome_event(ended),)


def _surplus(view: ReleasingView, judgements: list[Judgement]) -> tuple[Rental, ...]:
    """Machines of this job without a rental of ours: their create had no answer, or came from a suspended process."""
    assert view.evidence is not None
    known = {rental.provider_id for rental in view.rentals} | {each.rental.provider_id for each in judgements}
    job = view.visit.job.id
    # Searching the text comes first, as it costs least: there may be hundreds of machines, and as many jobs that look.
    labelled = [machine for machine in view.evidence.listing.machines if job in machine.label]
    strangers = [machine for machine in labelled if _is_of_job(machine, view)]
    return tuple(
        surplus_rental(_attempt_of(machine, view), machine, now=view.visit.now)
        for machine in strangers
        if machine.provider_id not in known
    )


def _is_of_job(machine: Machine, view: ReleasingView) -> bool:
    label = Label.parse(machine.label)
    return label is not None and (label.installation, label.job) == (view.installation, view.visit.job.id)


def _attempt_of(machine: Machine, view: ReleasingView) -> Rental:
    for rental in view.rentals:
        if rental.label == machine.label:
            return rental
    job = view.visit.job
    return Rental(
        label=machine.label,
        job_id=job.id,
        attempt=job.attempt,
        provider=job.spec.provider,
        state=RentalState.RELEASING,
    )


def _costs(view: ReleasingView, rentals: tuple[Rental, ...], gone: list[Rental]) -> tuple[CostLine, ...]:
    assert view.evidence is not None
    now = view.visit.now
    labels = {rental.label for rental in gone}
    closed = [closed_cost(line, now=now) for line in view.costs if line.rental_label in labels]
    machines = {machine.provider_id: machine for machine in view.evidence.listing.machines}
    billed = {line.rental_label for line in view.costs}
    opened = [
        opened_cost(rental, machines[rental.provider_id], now=now)
        for rental in rentals
        if rental.label not in billed and rental.provider_id is not None and rental.provider_id in machines
    ]
    return (*closed, *opened)


def _all_gone(write: Write, job: Job, *, now: float, policy: Policy) -> Write:
    """Every rental is confirmed gone: the job ends, or starts its next attempt."""
    costs, rentals, events = write.costs, write.rentals, write.events
    if job.outcome is not None:
        ended = go_on(job, Move.ALL_GONE, now=now, events=events, rentals=rentals, costs=costs)
        return changed(ended, due_in=None, cleared_alerts=("release", "silence", "provisioning", PARKED))
    failed = job.failed_before_login + job.failed_after_login
    again = go_on(job.next_attempt(), Move.TRY_AGAIN, now=now, events=events, rentals=rentals, costs=costs)
    return changed(again, due_in=policy.attempt_after(failed), cleared_alerts=("release", "silence", PARKED))


def _release_alerts(view: ReleasingView, policy: Policy) -> tuple[Alert, ...]:
    waited = view.visit.now - view.visit.job.state_since
    if waited < policy.release_alert_seconds:
        return ()
    why = view.problem or _still_there(view)
    message = f"the machine has not been released for {waited / 60:.0f} min and may still be billing: {why}"
    return (Alert(kind="release", job_id=view.visit.job.id, message=message),)


def _still_there(view: ReleasingView) -> str:
    assert view.evidence is not None
    account = view.evidence.listing.account
    if any(rental.account not in (None, account) for rental in not_gone(view.rentals)):
        return f"it belongs to another provider account than the one in use ({account})"
    return "the provider still lists it"


async def perform(action: Action, job: Job, view: ReleasingView, world: World) -> Write:
    if isinstance(action, CleanUp):
        return await clean_up(job, view.visit, world)
    if isinstance(action, Analyse):
        return await analysed(job, view.visit, world)
    if isinstance(action, LetGo):
        return await _let_go(action, job, world)
    provider = world.provider(job.spec.provider)
    for rental in not_gone(view.rentals):
        await world.forget_remote(rental.label)
    problems = []
    for provider_id in action.provider_ids:
        try:
            await provider.destroy(provider_id)
        except ProviderError as problem:  # destroy the others anyway
            problems.append(str(problem))
    if not problems:
        return wait(job, 0.0)
    after, seconds, failures = failed_try(job, world.policy)
    events = () if failures else (NewEvent(kind="destroy_failed", payload={"problem": problems[0]}),)
    return wait(after, seconds, events=events)


async def _let_go(action: LetGo, job: Job, world: World) -> Write:
    provider = world.provider(job.spec.provider)
    assert isinstance(provider, CanRelabel), "it was labelled by the same provider"
    try:
        for provider_id in action.provider_ids:
            await provider.relabel(provider_id, action.label)
    except ProviderError as problem:
        after, seconds, failures = failed_try(job, world.policy)
        events = () if failures else (NewEvent(kind="relabel_failed", payload={"problem": str(problem)}),)
        return wait(after, seconds, events=events)
    return wait(job, 0.0)


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
