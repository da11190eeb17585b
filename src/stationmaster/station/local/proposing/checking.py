"""Checks a request completely, once: recipe, parameters, names, dataset, secrets, offers, price and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import PurePosixPath

from stationmaster.config import read_monitoring
from stationmaster.control.publishing.samples import captions_in
from stationmaster.datasets.report import DatasetProblem, DatasetReport
from stationmaster.datasets.rules import rules_of
from stationmaster.datasets.validate import check
from stationmaster.errors import NotFound, UserError
from stationmaster.estimate import most_per_hour
from stationmaster.model import ADOPTED_RECIPE, JobSpec, Quote
from stationmaster.money import MicroDollars
from stationmaster.providers.base import HasClusters, Provider
from stationmaster.recipes.parameter_levers import trained_resolution
from stationmaster.recipes.parameters import ParameterValue, resolve
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.registry import StoredRecipe, find
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.wishes import require_usable_gpus, with_wish, without_secrets
from stationmaster.settings import Settings
from stationmaster.station.datasets import Progress
from stationmaster.station.local.dataset_sources import LocalDataset, fetch_dataset
from stationmaster.station.local.proposing.gates import Gates, check_gates, check_tokens
from stationmaster.station.local.proposing.hooks import run_hooks
from stationmaster.station.local.proposing.limits import Limits, limits_again, limits_of
from stationmaster.station.local.proposing.naming import checked_name
from stationmaster.station.local.proposing.quoting import PastRuns, Quoted, Work, quote_work
from stationmaster.station.proposals import OfferTerms, PlannedConfig, PlannedStep, Terms, TrainRequest

_SHOWN_ROOT = "/opt/stationmaster/jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A valid request: its terms, and what else is needed to create the job."""

    stored: StoredRecipe
    job_id: str
    trigger: str | None
    dataset: LocalDataset
    terms: Terms
    unneeded_secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAgain:
    """A valid request for a job like an ended one."""

    terms: Terms
    unneeded_secrets: tuple[str, ...]


def check_request(
    request: TrainRequest,
    settings: Settings,
    provider: Provider,
    *,
    job_id: str,
    past_runs: PastRuns,
    progress: Progress | None = None,
    is_dry_run: bool = False,
) -> Checked:
    """Check the request and return its terms. Raises UserError with what to change.

    In a dry run a full disk of this computer is a note.
    """
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
    found = _check_dataset(dataset, stored.recipe, parameters, request.trigger)
    report = found.report
    facts: dict[str, str | int] = {
        "path": str(dataset.path),
        "images": report.images,
        "rows": report.rows,
        "bytes": report.bytes,
    }
    hooked = run_hooks(stored, parameters, facts)
    can_run = _check_can_run(stored, hooked.parameters, settings, provider)
    work = Work(
        recipe=stored.recipe,
        parameters=_with_prompts(hooked.parameters, found.captions, request, stored.recipe),
        images=report.images,
        dataset_bytes=report.bytes,
        max_price=request.max_price,
        is_dry_run=is_dry_run,
        needs_offer=not is_dry_run,
        offer=request.offer,
    )
    quoted = quote_work(work, provider, past_runs=past_runs, home=settings.home)
    identity = JobIdentity(id=job_id, name=name, trigger=request.trigger or "", attempt=1)
    terms = _terms(
        work,
        quoted,
        lambda quote: limits_of(quote, settings, max_hours=request.max_hours, max_spend=request.max_spend),
        identity=identity,
        provider=provider,
        rows=report.rows,
        notes=(*_dataset_notes(report.warnings), *hooked.notes, *can_run.notes),
    )
    return Checked(
        stored=stored,
        job_id=job_id,
        trigger=request.trigger,
        dataset=dataset,
        terms=terms,
        unneeded_secrets=can_run.unneeded_secrets,
    )


def check_again(
    spec: JobSpec,
    settings: Settings,
    provider: Provider,
    *,
    past_runs: PastRuns,
    max_hours: float | None = None,
    max_spend: MicroDollars | None = None,
    offer: str | None = None,
    is_dry_run: bool = False,
) -> CheckedAgain:
    """The terms of a new job like this one, with other limits if they are given. Raises UserError as `check_request`
    does.
    """
    stored = find(spec.recipe, folders=settings.recipes)
    require_usable_gpus(stored.recipe, spec.machine)
    stored = replace(stored, recipe=with_wish(stored.recipe, spec.machine))
    parameters = resolve(stored.recipe, dict(spec.parameters))
    can_run = _check_can_run(stored, parameters, settings, provider)
    work = Work(
        recipe=stored.recipe,
        parameters=parameters,
        images=spec.dataset.images,
        dataset_bytes=spec.dataset.size,
        max_price=spec.max_price_per_hour,
        avoided_machines=spec.machine.avoided_machines,
        is_dry_run=is_dry_run,
        offer=offer,
    )
    quoted = quote_work(work, provider, past_runs=past_runs, home=settings.home)
    identity = JobIdentity(id=spec.id, name=spec.name, trigger=spec.trigger or "", attempt=1)
    terms = _terms(
        work,
        quoted,
        lambda quote: limits_again(spec, quote, settings, max_hours=max_hours, max_spend=max_spend),
        identity=identity,
        provider=provider,
        rows=0,
        notes=can_run.notes,
    )
    return CheckedAgain(terms=terms, unneeded_secrets=can_run.unneeded_secrets)


def _terms(
    work: Work,
    quoted: Quoted,
    limits_for: Callable[[Quote], Limits],
    *,
    identity: JobIdentity,
    provider: Provider,
    rows: int,
    notes: tuple[str, ...],
) -> Terms:
    plan = _plan(work, identity)
    own = _offer_terms(work, quoted, limits_for, notes)
    return Terms(
        name=identity.name,
        recipe=work.recipe.reference,
        provider=provider.name,
        parameters=work.parameters,
        images=work.images,
        rows=rows,
        dataset_bytes=work.dataset_bytes,
        quote=own.quote,
        max_seconds=own.max_seconds,
        max_spend=own.max_spend,
        max_price_per_hour=own.max_price_per_hour,
        spend_note=own.spend_note,
        steps=tuple(PlannedStep(name=step.name, argv=step.argv, env=step.env) for step in plan.steps),
        configs=tuple(
            PlannedConfig(path=f"{_root(identity)}/{config.path}", text=config.text) for config in plan.configs
        ),
        notes=own.notes,
        offers=tuple(_offer_terms(work, one, limits_for, notes) for one in quoted.alternatives),
        no_offer=quoted.no_offer,
    )


def _offer_terms(
    work: Work, quoted: Quoted, limits_for: Callable[[Quote], Limits], notes: tuple[str, ...]
) -> OfferTerms:
    limits = limits_for(quoted.quote)
    return OfferTerms(
        offer=quoted.offer,
        quote=quoted.quote,
        max_price_per_hour=most_per_hour(quoted.quote, work.max_price),
        max_seconds=limits.max_seconds,
        max_spend=limits.max_spend,
        spend_note=limits.spend_note,
        notes=(*notes, *quoted.notes, *limits.notes),
    )


def _plan(work: Work, identity: JobIdentity) -> Plan:
    """Render the plan now: an unknown name in a template fails here, not on the rented machine."""
    return render_plan(work.recipe, parameters=work.parameters, job=identity, machine_root=_root(identity))


def _root(identity: JobIdentity) -> str:
    return str(PurePosixPath(_SHOWN_ROOT) / identity.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckedDataset:
    report: DatasetReport
    captions: tuple[str, ...]  # a few of them


def _check_dataset(
    dataset: LocalDataset, recipe: Recipe, parameters: Mapping[str, ParameterValue], trigger: str | None
) -> _CheckedDataset:
    if not dataset.path.exists():
        raise NotFound(f"there is no dataset at {dataset.path}", hint="pass the folder with the images and captions")
    rules = rules_of(recipe.dataset, trigger=trigger, resolution=trained_resolution(recipe, parameters))
    with dataset.opened() as source:
        report = check(source, rules)
        report.raise_for_errors()
        return _CheckedDataset(report=report, captions=tuple(captions_in(source, trigger=trigger)))


def _dataset_notes(warnings: Sequence[DatasetProblem]) -> Iterator[str]:
    """One note for each kind of warning: the first, and how many more there are."""
    for _, same in groupby(sorted(warnings, key=lambda one: one.code), key=lambda one: one.code):
        first, *others = same
        more = f" (and {len(others)} more like it; `stationmaster dataset check` lists them)" if others else ""
        yield f"{first.path or 'dataset'}: {first.message}{more}"


def _with_prompts(
    parameters: Mapping[str, ParameterValue], captions: Sequence[str], request: TrainRequest, recipe: Recipe
) -> Mapping[str, ParameterValue]:
    """Unless the request has sample prompts, use captions of the dataset."""
    if not captions or "sample_prompts" not in recipe.parameters or "sample_prompts" in request.parameters:
        return parameters
    return {**parameters, "sample_prompts": "\n".join(captions)}


def _check_can_run(
    stored: StoredRecipe, parameters: Mapping[str, ParameterValue], settings: Settings, provider: Provider
) -> Gates:
    """Check that the provider and the secrets suffice. Raises UserError if they do not."""
    _require_nodes(stored, provider)
    gates = check_gates(stored.recipe, parameters, settings)
    recipe = without_secrets(stored.recipe, gates.unneeded_secrets)
    tokens = check_tokens(recipe, settings, provider=provider.name)
    return replace(gates, notes=(*tokens, *gates.notes, *_image_notes(recipe, provider)))


def _image_notes(recipe: Recipe, provider: Provider) -> tuple[str, ...]:
    if provider.name != "loopback" or recipe.image is None:
        return ()
    return (f"this computer does not use the image {recipe.image}: the recipe installs what is missing here",)


def _require_nodes(stored: StoredRecipe, provider: Provider) -> None:
    most = provider.most_nodes if isinstance(provider, HasClusters) else 1
    if stored.recipe.nodes > most:
        raise UserError(
            f"{stored.recipe.reference} trains on {stored.recipe.nodes} machines, but {provider.name} offers {most}",
            hint="use a provider that has clusters, or a recipe for one machine",
        )
