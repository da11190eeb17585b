"""From a person's request to a job's specification: everything is checked before any money can be spent."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from stationmaster.config import read_monitoring
from stationmaster.control.delivering.samples import captions_of
from stationmaster.control.sources import LocalDataset, brought_home
from stationmaster.errors import NotFound, UserError
from stationmaster.model import DatasetRef, JobSpec, Quote
from stationmaster.providers.base import HasClusters, Provider
from stationmaster.recipes.parameters import ParameterValue, resolve
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.registry import StoredRecipe, find
from stationmaster.recipes.schema import Dataset
from stationmaster.settings import Settings
from stationmaster.station.base import PlannedStep, Preview, Terms, TrainRequest
from stationmaster.station.gates import check_gates, check_tokens, require_secrets
from stationmaster.station.hooks import run_hooks
from stationmaster.station.limits import Limits, limits_again, limits_of
from stationmaster.station.quoting import PastRuns, Work, quote_work

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # without letters that look like digits
_PREVIEW_ROOT = "/opt/stationmaster/jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A request that can be carried out."""

    stored: StoredRecipe
    parameters: dict[str, ParameterValue]
    name: str
    trigger: str | None
    provider: str
    dataset: LocalDataset
    images: int
    rows: int
    dataset_bytes: int
    notes: tuple[str, ...]
    quote: Quote
    limits: Limits


def check_request(
    request: TrainRequest, settings: Settings, provider: Provider, *, past_runs: PastRuns = lambda _recipe: ()
) -> Checked:
    """Recipe, parameters, names, dataset, offers and price. Raises the UserError that names what to change."""
    stored = find(request.recipe, folders=settings.recipes)
    parameters = resolve(stored.recipe, request.parameters)
    name = checked_name(request.name or request.dataset.name or stored.recipe.name)
    checked_id(request.id)
    read_monitoring(request.monitoring)
    dataset = brought_home(request.dataset, settings)
    images, rows, size, notes = _check_dataset(dataset.path, stored.recipe.dataset, request.trigger)
    facts: dict[str, str | int] = {"path": str(dataset.path), "images": images, "rows": rows, "bytes": size}
    hooked = run_hooks(stored, parameters, facts)
    parameters = hooked.parameters
    notes = (*notes, *hooked.notes, *_may_run(stored, parameters, settings, provider))
    work = Work(
        recipe=stored.recipe,
        parameters=parameters,
        images=images,
        dataset_bytes=size,
        max_price=request.max_price,
    )
    quote, assumed = quote_work(work, provider, past_runs=past_runs, home=settings.home)
    limits = limits_of(quote, settings, max_hours=request.max_hours, max_spend=request.max_spend)
    return Checked(
        stored=stored,
        parameters=parameters,
        name=name,
        trigger=request.trigger,
        provider=provider.name,
        dataset=dataset,
        images=images,
        rows=rows,
        dataset_bytes=size,
        notes=(*notes, *assumed, *limits.notes),
        quote=quote,
        limits=limits,
    )


def terms_again(
    spec: JobSpec, settings: Settings, provider: Provider, *, past_runs: PastRuns = lambda _recipe: ()
) -> Terms:
    """What a further job like this one would take and cost now. Raises UserError as `check_request` does."""
    stored = find(spec.recipe, folders=settings.recipes)
    parameters = resolve(stored.recipe, dict(spec.parameters))
    notes = _may_run(stored, parameters, settings, provider)
    work = Work(
        recipe=stored.recipe,
        parameters=parameters,
        images=spec.dataset.images,
        dataset_bytes=spec.dataset.size,
        max_price=spec.max_price_per_hour,
    )
    quote, assumed = quote_work(work, provider, past_runs=past_runs, home=settings.home)
    limits = limits_again(spec, quote, settings)
    return Terms(
        quote=quote,
        max_seconds=limits.max_seconds,
        max_spend=limits.max_spend,
        spend_note=limits.spend_note,
        notes=(*notes, *assumed, *limits.notes),
    )


def preview_of(checked: Checked, request: TrainRequest) -> Preview:
    plan = _plan(checked, job_id=request.id or "JOB")
    return Preview(
        name=checked.name,
        recipe=checked.stored.recipe.reference,
        provider=checked.provider,
        parameters=checked.parameters,
        images=checked.images,
        rows=checked.rows,
        dataset_bytes=checked.dataset_bytes,
        quote=checked.quote,
        max_seconds=checked.limits.max_seconds,
        max_spend=checked.limits.max_spend,
        spend_note=checked.limits.spend_note,
        steps=tuple(PlannedStep(name=step.name, argv=step.argv, env=step.env) for step in plan.steps),
        notes=checked.notes,
    )


def spec_of(checked: Checked, request: TrainRequest, folder: Path) -> JobSpec:
    """The specification, with the dataset packed into `folder` under its own hash."""
    from stationmaster.datasets.pack import pack_into, write_manifest  # only when something is submitted
    from stationmaster.datasets.source import opened

    job_id = request.id or fresh_id()
    _plan(checked, job_id=job_id)  # an unknown name in a template is an error here, not on the rented machine
    folder.mkdir(parents=True, exist_ok=True)
    with opened(checked.dataset.path) as source:
        packed = pack_into(source, folder)
    write_manifest(packed)  # by which a machine that pulls the files itself is checked
    dataset = DatasetRef(
        source=checked.dataset.source,
        archive=str(packed.path),
        sha256=packed.sha256,
        size=packed.size,
        images=checked.images,
    )
    return JobSpec(
        id=job_id,
        name=checked.name,
        recipe=checked.stored.recipe.reference,
        provider=checked.provider,
        owner=request.owner,
        dataset=dataset,
        quote=checked.quote,
        max_seconds=checked.limits.max_seconds,
        max_spend=checked.limits.max_spend,
        max_price_per_hour=request.max_price,
        trigger=checked.trigger,
        parameters=_with_prompts(checked, request, packed.path),
        monitoring=read_monitoring(request.monitoring),
    )


def _with_prompts(checked: Checked, request: TrainRequest, archive: Path) -> dict[str, ParameterValue]:
    """A trainer that makes samples shows captions of the set itself, unless somebody wrote prompts."""
    if "sample_prompts" not in checked.stored.recipe.parameters or "sample_prompts" in request.parameters:
        return checked.parameters
    captions = captions_of(archive, trigger=checked.trigger)
    return {**checked.parameters, "sample_prompts": "\n".join(captions)} if captions else checked.parameters


def checked_id(job_id: str | None) -> str:
    """The id asked for, or a fresh one. It becomes part of paths and of machines' labels, so not any text will do."""
    if job_id is None:
        return fresh_id()
    if not _ID.fullmatch(job_id):
        raise UserError(f"{job_id!r} cannot be a job's id", hint="use up to 40 lower-case letters, digits and dashes")
    return job_id


def fresh_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


def checked_name(name: str) -> str:
    """A name people can read; what becomes a file name is made safe where it does."""
    if not name.strip() or len(name) > 120 or any(not letter.isprintable() for letter in name):
        raise UserError(f"{name!r} cannot be a job's name", hint="use up to 120 printable characters")
    return name.strip()


def _check_dataset(folder: Path, rules: Dataset, trigger: str | None) -> tuple[int, int, int, tuple[str, ...]]:
    from stationmaster.datasets.rules import rules_of
    from stationmaster.datasets.source import opened
    from stationmaster.datasets.validate import check

    if not folder.exists():
        raise NotFound(f"there is no dataset at {folder}", hint="give the folder that holds the images and captions")
    with opened(folder) as source:
        report = check(source, rules_of(rules, trigger=trigger))
    report.raise_for_errors()
    warnings = tuple(f"{one.path or 'dataset'}: {one.message}" for one in report.warnings)
    return report.images, report.rows, report.bytes, warnings


def _may_run(
    stored: StoredRecipe, parameters: Mapping[str, ParameterValue], settings: Settings, provider: Provider
) -> tuple[str, ...]:
    """What to tell of a recipe for which the provider and the secrets suffice. Raises UserError where they do not."""
    _require_nodes(stored, provider)
    require_secrets(stored.recipe, settings)
    notes = check_tokens(stored.recipe, settings, provider=provider.name)
    return (*notes, *check_gates(stored.recipe, parameters, settings))


def _require_nodes(stored: StoredRecipe, provider: Provider) -> None:
    most = provider.most_nodes if isinstance(provider, HasClusters) else 1
    if stored.recipe.nodes > most:
        raise UserError(
            f"{stored.recipe.reference} trains on {stored.recipe.nodes} machines at once, {provider.name} gives {most}",
            hint="use a provider that has clusters, or a recipe for one machine",
        )


def _plan(checked: Checked, *, job_id: str) -> Plan:
    identity = JobIdentity(id=job_id, name=checked.name, trigger=checked.trigger or "", attempt=1)
    root = str(PurePosixPath(_PREVIEW_ROOT) / job_id)
    return render_plan(checked.stored.recipe, parameters=checked.parameters, job=identity, machine_root=root)
