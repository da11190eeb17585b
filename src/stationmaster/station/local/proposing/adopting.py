"""Checks a request to adopt a training by looking at its machine, and specifies the job that watches it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from stationmaster.config import read_monitoring
from stationmaster.control.machine.adoptable import FoundTraining, look_at_training
from stationmaster.control.wiring.adopted_hosts import host_name, instance_name, own_host
from stationmaster.durations import format_duration
from stationmaster.errors import (
    HostKeyRefused,
    IllegalMove,
    NotFound,
    ProviderError,
    RemoteError,
    Unreachable,
    UserError,
)
from stationmaster.model import (
    ADOPTED_RECIPE,
    NO_DATASET,
    UNLIMITED_SECONDS,
    AdoptedTraining,
    Job,
    JobSpec,
    Label,
    Machine,
    MachineStatus,
    Quote,
)
from stationmaster.money import ZERO, cost, format_dollars
from stationmaster.providers.adopted_host import AdoptedHost
from stationmaster.providers.base import CanLetUsIn, CanRelabel, CanStop, Provider
from stationmaster.remote.connect import connect
from stationmaster.remote.pyz import build_pyz
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.proposing.naming import checked_name
from stationmaster.station.proposals import PlannedStep, Terms
from stationmaster.watch.anomalies.registry import USUAL_REACTIONS

RELEASE_HOURS = 72.0
"""After how long a machine that is to be released is released in any case, unless the request says otherwise."""
_FREE = Quote(
    hours_low=0.0,
    hours_expected=0.0,
    hours_high=0.0,
    price_per_hour=ZERO,
    cost_low=ZERO,
    cost_expected=ZERO,
    cost_high=ZERO,
)
_LONGEST_PATH = 1000
_CLOCK_SECONDS = 300.0
_LOOKS = 4
_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What a request to adopt a training becomes."""

    spec: JobSpec
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The machine: an instance of a provider's account, or a host."""

    provider: Provider | None
    machine: Machine | None
    place: AdoptedHost


def check_adoption(request: AdoptRequest, installation: Installation, *, job_id: str, name: str | None) -> Adoption:
    """Look at the machine and return the job that watches its training.

    Raises UserError with what to change: no such instance or host, no log, no process, or one that a job has already.
    """
    _require_paths(request)
    target = asyncio.run(_find_target(request, installation))
    found = asyncio.run(_look(request, target, installation))
    _require_training(request, found)
    training = _training(request, target, found)
    _require_new(training, installation)
    shown_name = checked_name(name or PurePosixPath(found.output or "").name or "adopted")
    spec = _spec(request, training, target, job_id=job_id, name=shown_name)
    return Adoption(spec=spec, terms=_terms(spec, found, target))


def require_not_adopted(spec: JobSpec, installation: Installation) -> None:
    """Raises IllegalMove if a job watches the same training already; asked again when the job is queued."""
    if spec.adopted is not None:
        _require_new(spec.adopted, installation)


def _require_paths(request: AdoptRequest) -> None:
    for option, path in (("log", request.log), ("output", request.output), ("pid-file", request.pid_file)):
        if path is not None and (not path or len(path) > _LONGEST_PATH or not path.isprintable()):
            raise UserError(
                f"{option}: {path!r} is not a path on the machine", hint="give an absolute path, or one below ~"
            )
    if request.release and not request.is_instance:
        raise UserError(
            f"--release: nothing is rented on {request.target}",
            hint="leave out --release; only a rented instance can be released",
        )


async def _find_target(request: AdoptRequest, installation: Installation) -> _Target:
    if not request.is_instance:
        own_host(request.target, installation.settings)
        return _Target(provider=None, machine=None, place=_place(host_name(request.target), installation))
    provider = installation.provider(request.provider or _usual_provider(installation), request.account)
    if not isinstance(provider, CanStop):
        raise UserError(f"{provider.name} has no instances", hint="name the provider: --provider vastai")
    machine = await provider.describe(request.target)
    if machine is None:
        raise NotFound(
            f"there is no instance {request.target} in the account of {provider.name}",
            hint="run `stationmaster instances` to see them; --provider and --account choose another account",
        )
    _require_adoptable(machine, request, provider, installation)
    return _Target(
        provider=provider, machine=machine, place=_place(instance_name(provider.name, request.target), installation)
    )


def _usual_provider(installation: Installation) -> str:
    """The default provider if it rents; otherwise Vast.ai."""
    usual = installation.settings.provider
    return usual if usual.partition(":")[0] in ("vastai", "simulator") else "vastai"


def _place(name: str, installation: Installation) -> AdoptedHost:
    found = installation.provider(name)
    assert isinstance(found, AdoptedHost), "the name's beginning says so"
    return found


def _require_adoptable(machine: Machine, request: AdoptRequest, provider: Provider, installation: Installation) -> None:
    label = Label.parse(machine.label)
    if label is not None and label.installation == installation.store.installation_id:
        raise IllegalMove(
            f"instance {request.target} belongs to job {label.job} already", hint=f"stationmaster watch {label.job}"
        )
    if label is not None:
        raise IllegalMove(f"instance {request.target} belongs to another installation ({machine.label})")
    if machine.status is not MachineStatus.RUNNING:
        raise IllegalMove(
            f"instance {request.target} is {machine.status.value.lower()}, so nothing trains on it",
            hint="start it and its training, then adopt it",
        )
    if request.release and not isinstance(provider, CanRelabel):
        raise UserError(f"{provider.name} cannot hand a machine over", hint="leave out --release")


async def _look(request: AdoptRequest, target: _Target, installation: Installation) -> FoundTraining:
    try:
        provider: object = target.provider
        if isinstance(provider, CanLetUsIn):
            await provider.let_us_in(request.target)
        return await _look_patiently(request, target, installation)
    except HostKeyRefused as problem:
        raise UserError(
            f"{request.target} shows a host key that you have not confirmed; nothing was sent",
            hint="compare it with the machine's own, then run `stationmaster keys trust "
            f"{_address(request.target, installation)}`",
        ) from problem
    except RemoteError as problem:
        hint = problem.hint or f"try it yourself: ssh {request.target}" if not request.is_instance else problem.hint
        raise UserError(f"{request.target} cannot be looked at: {problem}", hint=hint) from problem
    except ProviderError as problem:
        raise UserError(f"{request.target} cannot be looked at: {problem}", hint=problem.hint) from problem


async def _look_patiently(request: AdoptRequest, target: _Target, installation: Installation) -> FoundTraining:
    """Look at the training. A key that was just authorized on an instance may take some seconds to be accepted."""
    settings, tries = installation.settings, _LOOKS if request.is_instance else 1
    while True:
        tries -= 1
        place = await target.place.find_place()
        if place is None:
            raise NotFound(f"{request.target} no longer exists")
        try:
            return await look_at_training(
                place.access,
                {"log": request.log, "output": request.output, "pid_file": request.pid_file},
                connect=partial(connect, ssh=settings.ssh, way=settings.transfer.way),
                trackside=build_pyz(settings.home / "trackside"),
                now=time.time,
            )
        except Unreachable:
            if tries <= 0:
                raise
        await installation.pause(_PAUSE_SECONDS)


def _address(target: str, installation: Installation) -> str:
    if target.isdigit():
        return target
    host = own_host(target, installation.settings)
    return host.address if host.port is None else f"{host.address}:{host.port}"


def _require_training(request: AdoptRequest, found: FoundTraining) -> None:
    if not found.logs:
        raise UserError(
            f"no log on {request.target} matches {found.log}",
            hint="quote the pattern, so that your own shell does not expand it; * stays within a folder",
        )
    if found.problem:
        raise UserError(found.problem, hint="check --pid-file, or leave it out to find the process by its open log")


def _training(request: AdoptRequest, target: _Target, found: FoundTraining) -> AdoptedTraining:
    machine = target.machine
    is_dated = machine is not None and machine.created_at > 0
    return AdoptedTraining(
        target=request.target,
        log=found.log,
        output=found.output,
        process=found.process,
        command=found.command,
        started_at=found.started_at,
        instance=None if machine is None else machine.provider_id,
        rented_at=machine.created_at if machine is not None and is_dated else None,
        release=request.release,
        label_before="" if machine is None else machine.label,
        stop_signal=request.stop_signal,
        unknown=tuple(_unknown(found, machine)),
    )


def _unknown(found: FoundTraining, machine: Machine | None) -> Iterator[str]:
    """What nobody can find out about a training that was started by hand, as sentences."""
    if found.process is None:
        yield "When it ends: no process was identified, so the job ends only by stop, cancel or its limit."
    else:
        yield "Its exit code: it counts as finished if its newest model is whole and its log shows no error."
    if found.process is not None and not found.can_be_stopped:
        yield f"How to stop it: process {found.process['pid']} belongs to another user than {found.user}."
    yield "Its settings and dataset, beyond what the log shows; its total steps, until the log shows them."
    yield "When the earlier lines of the log were written: they are dated by an estimate."
    if machine is not None:
        yield "What the machine cost before the adoption: the job counts from then on."


def _require_new(training: AdoptedTraining, installation: Installation) -> None:
    for job in installation.store.jobs.listed(with_ended=False, limit=100_000):
        if _is_same(training, job):
            raise IllegalMove(f"job {job.id} watches this training already", hint=f"stationmaster watch {job.id}")


def _is_same(training: AdoptedTraining, job: Job) -> bool:
    known = job.spec.adopted
    if known is None:
        return False
    if known.process is not None and training.process is not None:
        return known.is_same_process(training)
    return (known.target, known.log) == (training.target, training.log)


def _spec(request: AdoptRequest, training: AdoptedTraining, target: _Target, *, job_id: str, name: str) -> JobSpec:
    release_hours = RELEASE_HOURS if training.release else None
    hours = request.max_hours if request.max_hours is not None else release_hours
    if hours is not None and hours <= 0:
        raise UserError("--max-hours must be above zero")
    provider = target.place.name
    if training.release and target.provider is not None:
        provider = target.provider.name
    watched: dict[str, Any] = {"stall_detection": {"terminate": request.stop_when_stalled}}
    if not request.stop_when_stalled:  # whatever the settings do to trainings of this installation's own
        watched["reactions"] = {kind: reaction.value for kind, reaction in USUAL_REACTIONS.items()}
    return JobSpec(
        id=job_id,
        name=name,
        recipe=ADOPTED_RECIPE,
        provider=provider,
        owner=request.owner,
        dataset=NO_DATASET,
        quote=_FREE,
        max_seconds=UNLIMITED_SECONDS if hours is None else hours * 3600,
        max_spend=ZERO,
        monitoring=read_monitoring(watched),
        adopted=training,
    )


def _terms(spec: JobSpec, found: FoundTraining, target: _Target) -> Terms:
    assert spec.adopted is not None
    return Terms(
        name=spec.name,
        recipe=spec.recipe,
        provider=spec.provider,
        parameters={},
        images=0,
        rows=0,
        dataset_bytes=0,
        quote=spec.quote,
        max_price_per_hour=ZERO,
        max_seconds=spec.max_seconds,
        max_spend=spec.max_spend,
        steps=(PlannedStep(name="train", argv=(found.command,) if found.command else (), env={}),),
        notes=tuple(_notes(spec, found, target)),
        adopted=spec.adopted,
    )


def _notes(spec: JobSpec, found: FoundTraining, target: _Target) -> Iterator[str]:
    """What will be done, what limits it, and what looks wrong."""
    training, machine = spec.adopted, target.machine
    assert training is not None
    yield f"reads {found.logs[0]}" + (f", the newest of {found.logs_found} logs" if found.logs_found > 1 else "")
    if found.output_is_there:
        files = "1 model file" if found.checkpoints == 1 else f"{found.checkpoints} model files"
        yield f"fetches checkpoints from {found.output} ({files} there now)"
    else:
        yield f"warning: there is no folder {found.output} yet; no checkpoint is fetched until there is"
    if training.process is not None and not found.writes_log:
        yield f"warning: process {training.pid} ({training.command}) does not have the log open; is it the training?"
    if abs(found.seconds_ahead) > _CLOCK_SECONDS:
        yield f"warning: the machine's clock differs by {format_duration(abs(found.seconds_ahead))}"
    price = ZERO if machine is None else machine.price_per_hour
    limit = format_duration(spec.max_seconds)
    if training.release:
        yield (
            f"instance {training.instance} gets this job's label and is DESTROYED, with everything on it, once the "
            f"training is over and its model is verified here; after {limit} at the latest the training is stopped "
            f"for that ({format_dollars(price, 3)}/h, at most {format_dollars(cost(price, spec.max_seconds))})"
        )
    elif machine is not None:
        yield (
            f"instance {training.instance} stays as it is and goes on billing its account "
            f"({format_dollars(price, 3)}/h) after the training; --release would destroy it then"
        )
    if spec.max_seconds < UNLIMITED_SECONDS and not training.release:
        yield f"after {limit} the training is stopped"
    for sentence in training.unknown:
        yield f"not known: {sentence[0].lower()}{sentence[1:]}"
