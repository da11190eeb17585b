"""The safety net: compares each provider's machines with the store, from both sides.

The provider's list is read first and the store second, so every listed machine of ours already has its intent.
Everything a sweep does can be repeated, so it also works where nothing can be written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from stationmaster.control.flow.world import World
from stationmaster.control.machine.adoption import opened_cost, surplus_rental
from stationmaster.control.machine.release import Next, asked_to_go, closed_cost, gather_evidence, judge
from stationmaster.control.periodic.sweep_report import Act, Finding, Report, Verdict
from stationmaster.control.periodic.sweep_rules import Subject, judge_machine
from stationmaster.errors import ProviderError, StoreError
from stationmaster.event_log import get_logger
from stationmaster.model import Alert, CostLine, Job, Label, Machine, Rental, RentalState, State
from stationmaster.money import MicroDollars, cost
from stationmaster.providers.base import CanStop

log = get_logger("stationmaster.sweep")

Value = TypeVar("Value")
Written = TypeVar("Written")

SWEEP = "sweep"
SEPARATE_SWEEP = "sweeper"
"""Names under which the store has the time of the last sweep: by a worker, by `stationmaster sweeper`."""


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Keeps no state: what an earlier sweep saw is in the alerts that it raised."""

    world: World

    async def sweep(self, *, act: bool = True, doomed: Iterable[str] = ()) -> Report:
        """Check every machine of every provider; with `act` apply the rules, and destroy those in `doomed`."""
        report = Report()
        for name in tuple(self.world.providers):  # a job may open another one meanwhile
            try:
                await self._sweep_provider(name, report, act=act, doomed=frozenset(doomed))
            except ProviderError as problem:
                report.problems.append(f"{name}: {problem}")
                log.warning("sweep.failed", provider=name, problem=str(problem))
        return report

    async def _sweep_provider(self, name: str, report: Report, *, act: bool, doomed: frozenset[str]) -> None:
        listing = await self.world.listings.of(name)
        now = await self.world.now()
        rentals = await self.world.ask_store(self.world.store.rentals.not_gone)
        jobs = await self._jobs(rentals)
        lines = await self.world.ask_store(self.world.store.costs.of_jobs, {rental.job_id for rental in rentals})
        seen_before = {each.kind: each.at for each in await self.world.ask_store(self.world.store.alerts.open)}
        for machine in listing.machines:
            rental = _rental_of(machine, rentals, provider=name)
            subject = Subject(
                machine=machine,
                installation=self.world.store.installation_id,
                rental=rental,
                job=jobs.get(rental.job_id) if rental else None,
                known_since=seen_before.get(_alert_kind(machine)),
            )
            verdict = judge_machine(subject, now=now, policy=self.world.policy)
            if machine.provider_id in doomed:
                verdict = Verdict(act=Act.DESTROY, why="asked for by name")
            job_id = None if subject.job is None else subject.job.id
            finding = Finding(
                provider=name,
                machine=machine,
                verdict=verdict,
                rental=rental,
                job_id=job_id,
                cost=_cost_so_far(machine, rental, lines, now=now),
            )
            report.findings.append(await self._act(finding, now=now) if act else finding)
        if act:
            await self._confirm(name, report)

    async def _rentals(self, provider: str) -> list[Rental]:
        rentals = await self.world.ask_store(self.world.store.rentals.not_gone)
        return [rental for rental in rentals if rental.provider == provider]

    async def _jobs(self, rentals: Iterable[Rental]) -> dict[str, Job]:
        """The jobs of rentals by id, in one query; a removed job is missing."""
        return await self.world.ask_store(self.world.store.jobs.several, {rental.job_id for rental in rentals})

    async def _act(self, finding: Finding, *, now: float) -> Finding:
        """Apply the verdict. A store that cannot be written does not stop a machine from being destroyed."""
        await self._raise_alert(finding)
        try:
            if finding.verdict.act is Act.DESTROY:
                await self._write_down(finding, now=now)
                await self.world.provider(finding.provider).destroy(finding.machine.provider_id)
            elif finding.verdict.act is Act.STOP:
                await self._stop(finding, now=now)
            else:
                return finding
        except ProviderError as problem:
            log.error("sweep.refused", instance=finding.machine.provider_id, problem=str(problem))
            return replace(finding, problem=str(problem))
        log.warning("sweep.acted", **finding.words())
        return replace(finding, done=True)

    async def _stop(self, finding: Finding, *, now: float) -> None:
        provider = self.world.provider(finding.provider)
        if not isinstance(provider, CanStop):
            return
        if finding.rental is not None and finding.rental.stopped_at is None:
            await self._try_to_write(
                self.world.store.rentals.put_without_lease, replace(finding.rental, stopped_at=now)
            )
        await provider.stop(finding.machine.provider_id)

    async def _write_down(self, finding: Finding, *, now: float) -> None:
        """Record a machine that is about to be destroyed, so that its end and its cost are followed."""
        rental = finding.rental or _row_for(finding)
        if rental is None:
            return
        if finding.rental is None:
            await self._try_to_write(
                self.world.store.costs.put_without_lease, opened_cost(rental, finding.machine, now=now)
            )
        doomed = asked_to_go(rental, now=now)
        await self._try_to_write(self.world.store.rentals.put_without_lease, doomed)

    async def _raise_alert(self, finding: Finding) -> None:
        if finding.verdict.act is Act.LEAVE:
            return
        message = f"machine {finding.machine.provider_id} ({finding.machine.label}): {finding.verdict.why}"
        alert = Alert(kind=_alert_kind(finding.machine), message=message, job_id=finding.job_id)
        await self._try_to_write(self.world.store.alerts.raise_without_lease, alert)

    async def _confirm(self, provider: str, report: Report) -> None:
        """Follow rentals to their end that no worker visits any more."""
        rentals = await self._rentals(provider)
        jobs = await self._jobs(rentals)
        ours = tuple(rental for rental in rentals if _is_unattended(rental, jobs.get(rental.job_id)))
        if not ours:
            return
        evidence = await gather_evidence(provider, ours, self.world)
        for rental in ours:
            now = await self.world.now()
            judgement = judge(rental, evidence, now=now)
            if await self._try_to_write(self.world.store.rentals.put_without_lease, judgement.rental) is False:
                continue  # known to be gone since it was read: what has its label now is another machine, without a row
            if judgement.next is Next.DESTROY and judgement.rental.provider_id is not None:
                await self._destroy_quietly(provider, judgement.rental.provider_id, report)
            if judgement.rental.state is RentalState.GONE:
                report.gone.append(rental.label)
                await self._close_costs(rental, now=now)
                kind = f"machine {judgement.rental.provider_id}"
                await self._try_to_write(self.world.store.alerts.clear_without_lease, kind)

    async def _destroy_quietly(self, provider: str, provider_id: str, report: Report) -> None:
        """Destroy one machine; a failure must not stop the others from being destroyed."""
        try:
            await self.world.provider(provider).destroy(provider_id)
        except ProviderError as problem:
            report.problems.append(f"{provider}: {provider_id}: {problem}")
            log.error("sweep.refused", instance=provider_id, problem=str(problem))

    async def _close_costs(self, rental: Rental, *, now: float) -> None:
        for line in await self.world.ask_store(self.world.store.costs.of_job, rental.job_id):
            if line.rental_label == rental.label:
                await self._try_to_write(self.world.store.costs.put_without_lease, closed_cost(line, now=now))

    async def _try_to_write(self, function: Callable[[Value], Written], value: Value) -> Written | None:
        """What the function returns; None if nothing can be written, which must not keep a machine from its end."""
        try:
            return await self.world.ask_store(function, value)
        except StoreError as problem:
            log.warning("sweep.not_written", problem=str(problem))
            return None


def _is_unattended(rental: Rental, job: Job | None) -> bool:
    """Whether no worker visits this rental any more."""
    return rental.surplus or job is None or job.state is State.ENDED or rental.attempt < job.attempt


def _cost_so_far(
    machine: Machine, rental: Rental | None, lines: Mapping[str, Sequence[CostLine]], *, now: float
) -> MicroDollars:
    """By the cost lines of its rental; a machine that has none is priced by its age, if the provider tells it."""
    of_job = () if rental is None else lines[rental.job_id]
    own = [line.so_far(now=now) for line in of_job if rental is not None and line.rental_label == rental.label]
    if own or not machine.created_at:
        return MicroDollars(sum(own))
    return cost(machine.price_per_hour, max(0.0, now - machine.created_at))


def _alert_kind(machine: Machine) -> str:
    return f"machine {machine.provider_id}"


def _rental_of(machine: Machine, rentals: list[Rental], *, provider: str) -> Rental | None:
    """The row that names the machine, or the one that still waits for an answer about its label.

    Else the row with its label under another name of the provider: two keys may open the same account, and a machine
    that is in use under one of them is no stray under the other.
    """
    here = [each for each in rentals if each.provider == provider]
    by_id = next((each for each in here if each.provider_id == machine.provider_id), None)
    waiting = next((each for each in here if each.provider_id is None and each.label == machine.label), None)
    elsewhere = (each for each in rentals if each.provider != provider and each.label == machine.label)
    return by_id or waiting or next(elsewhere, None)


def _row_for(finding: Finding) -> Rental | None:
    label = Label.parse(finding.machine.label)
    if label is None:
        return None
    origin = Rental(
        label=finding.machine.label,
        job_id=label.job,
        attempt=label.attempt,
        provider=finding.provider,
        state=RentalState.RELEASING,
    )
    return surplus_rental(origin, finding.machine, now=0.0)
