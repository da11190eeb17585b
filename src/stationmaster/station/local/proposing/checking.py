"""Checks a request completely, once: recipe, parameters, names, dataset, secrets, offers, price and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from stationmaster.config import read_monitoring
from stationmaster.datasets.report import DatasetReport
from stationmaster.datasets.rules import rules_of
from stationmaster.datasets.validate import check
from stationmaster.errors import NotFound, UserError
from stationmaster.estimate import most_per_hour
from stationmaster.model import ADOPTED_RECIPE, JobSpec, Quote
from stationmaster.money import MicroDollars
from stationmaster.providers.base import HasClusters, Provider
from stationmaster.recipes.parameters import ParameterValue, resolve
from stationmaster.recipes.plan import JobIdentity, render_plan
from stationmaster.recipes.registry import StoredRecipe, find
from stationmaster.recipes.schema import Dataset
from stationmaster.recipes.wishes import require_usable_gpus, with_wish
from stationmaster.settings import Settings
from stationmaster.station.datasets import Progress
from stationmaster.station.local.dataset_sources import LocalDataset, fetch_dataset
from stationmaster.station.local.proposing.gates import check_gates, check_tokens, require_secrets
from stationmaster.station.local.proposing.hooks import run_hooks
from stationmaster.station.local.proposing.limits import Limits, limits_again, limits_of
from stationmaster.station.local.proposing.naming import checked_name
from stationmaster.station.local.proposing.quoting import PastRuns, Work, quote_work
from stationmaster.station.proposals import PlannedStep, Terms, TrainRequest

_SHOWN_ROOT = "/opt/stationmaster/jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A valid request: its terms, and what else is needed to create the job."""

    stored: StoredRecipe
    job_id: str
    trigger: str | None
    dataset: LocalDataset
    terms: Terms


def check_request(
    request: TrainRequest,
    settings: Settings,
    provider: Provider,
    *,
    job_id: str,
    past_runs: PastRuns,
    progress: Progress | None = None,
) -> Checked:
    """Check the request and return its terms. Raises UserError with what to change."""
    stored = find(request.recipe, folders=settings.recipes)
    if stored.recipe.reference == ADOPTED_RECIPE:
        raise UserError(f"{ADOPTED_RECIPE} trains nothing", hint="to watch a training, run `stationmaster adopt`")
    require_usable_gpus(stored.recipe, request.machine)
    stored = replace(stored, recipe=with_wish(stored.recipe, request.machine))
    parameters = resolve(stored.recipe, request.parameters)
    checked_name(request.name or request.dataset.name or stored.recipe.name)  # before a long download
    read_monitoring(request.monitoring)
    dataset = fetch_dataset(request.dataset, settings, progress=progress)
    name = checked_name(request.name or dataset.name or request.dataset.name or stored.recipe.name)
    report = _check_dataset(dataset, stored.recipe.dataset, request.trigger)
    facts: dict[str, str | int] = {
        "path": str(dataset.path),
        "images": report.images,
        "rows": report.rows,
        "bytes": report.bytes,
    }
    hooked = run_hooks(stored, parameters, facts)
    run_notes = _check_can_run(stored, hooked.parameters, settings, provider)
    work = Work(
        recipe=stored.recipe,
        parameters=hooked.parameters,
        images=report.images,
        dataset_bytes=report.bytes,
        max_price=request.max_price,
    )
    quoted = quote_work(work, provider, past_runs=past_runs, home=settings.home)
    limits = limits_of(quoted.quote, settings, max_hours=request.max_hours, max_spend=request.max_spend)
    warnings = tuple(f"{one.path or 'dataset'}: {one.message}" for one in report.warnings)
    identity = JobIdentity(id=job_id, name=name, trigger=request.trigger or "", attempt=1)
    terms = _terms(
        work,
        quoted.quote,
        limits,
        identity=identity,
        provider=provider,
        rows=report.rows,
        notes=(*warnings, *hooked.notes, *run_notes, *quoted.notes),
    )
    return Checked(stored=stored, job_id=job_id, trigger=request.trigger, dataset=dataset, terms=terms)


def check_again(
    spec: JobSpec,
    settings: Settings,
    provider: Provider,
    *,
    past_runs: PastRuns,
    max_hours: float | None = None,
    max_spend: MicroDollars | None = None,
) -> Terms:
    """The terms of a new job like this one, with other limits if they are given. Raises UserError as `check_request`
    does.
    """
    stored = find(spec.recipe, folders=settings.recipes)
    require_usable_gpus(stored.recipe, spec.machine)
    stored = replace(stored, recipe=with_wish(stored.recipe, spec.machine))
    parameters = resolve(stored.recipe, dict(spec.parameters))
    run_notes = _check_can_run(stored, parameters, settings, provider)
    work = Work(
        recipe=stored.recipe,
        parameters=parameters,
        images=spec.dataset.images,
        dataset_bytes=spec.dataset.size,
        max_price=spec.max_price_per_hour,
        avoided_machines=spec.machine.avoided_machines,
    )
    quoted = quote_work(work, provider, past_runs=past_runs, home=settings.home)
    identity = JobIdentity(id=spec.id, name=spec.name, trigger=spec.trigger or "", attempt=1)
    limits = limits_again(spec, quoted.quote, settings, max_hours=max_hours, max_spend=max_spend)
    notes = (*run_notes, *quoted.notes)
    return _terms(work, quoted.quote, limits, identity=identity, provider=provider, rows=0, notes=notes)


def _terms(
    work: Work,
    quote: Quote,
    limits: Limits,
    *,
    identity: JobIdentity,
    provider: Provider,
    rows: int,
    notes: tuple[str, ...],
) -> Terms:
    return Terms(
        name=identity.name,
        recipe=work.recipe.reference,
        provider=provider.name,
        parameters=work.parameters,
        images=work.images,
        rows=rows,
        dataset_bytes=work.dataset_bytes,
        quote=quote,
        max_seconds=limits.max_seconds,
        max_spend=limits.max_spend,
        max_price_per_hour=most_per_hour(quote, work.max_price),
        spend_note=limits.spend_note,
        steps=_planned_steps(work, identity),
        notes=(*notes, *limits.notes),
    )


def _planned_steps(work: Work, identity: JobIdentity) -> tuple[PlannedStep, ...]:
    """Render the plan now: an unknown name in a template fails here, not on the rented machine."""
    root = str(PurePosixPath(_SHOWN_ROOT) / identity.id)
    plan = render_plan(work.recipe, parameters=work.parameters, job=identity, machine_root=root)
    return tuple(PlannedStep(name=step.name, argv=step.argv, env=step.env) for step in plan.steps)


def _check_dataset(dataset: LocalDataset, rules: Dataset, trigger: str | None) -> DatasetReport:
    if not dataset.path.exists():
        raise NotFound(f"there is no dataset at {dataset.path}", hint="pass the folder with the images and captions")
    with dataset.opened() as source:
        report = check(source, rules_of(rules, trigger=trigger))
    report.raise_for_errors()
    return report


def _check_can_run(
    stored: StoredRecipe, parameters: Mapping[str, ParameterValue], settings: Settings, provider: Provider
) -> tuple[str, ...]:
    """Check that the provider and the secrets suffice, and return notes. Raises UserError if they do not."""
    _require_nodes(stored, provider)
    require_secrets(stored.recipe, settings)
    notes = check_tokens(stored.recipe, settings, provider=provider.name)
    return (*notes, *check_gates(stored.recipe, parameters, settings))


def _require_nodes(stored: StoredRecipe, provider: Provider) -> None:
    most = provider.most_nodes if isinstance(provider, HasClusters) else 1
    if stored.recipe.nodes > most:
        raise UserError(
            f"{stored.recipe.reference} trains on {stored.recipe.nodes} machines, but {provider.name} offers {most}",
            hint="use a provider that has clusters, or a recipe for one machine",
        )
