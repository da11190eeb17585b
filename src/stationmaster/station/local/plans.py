"""The plan of a job, rendered again from its recipe: what was sent to the machine has paths of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from stationmaster.errors import NotFound, StationmasterError
from stationmaster.model import Event, Job
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.plan_container import PlanContainer
from stationmaster.recipes.plan_steps import PlanStep
from stationmaster.recipes.registry import find
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.wishes import recipe_for
from stationmaster.settings import Settings
from stationmaster.station.plans import JobPlan, RunStep, UsedContainer, UsedParameter, with_progress
from stationmaster.store.store import Store

_SHOWN_ROOT = "/opt/stationmaster/jobs"
_KINDS = ("step", "state")


def plan_of_job(job: Job, store: Store, settings: Settings) -> JobPlan:
    """The plan of the job's current attempt with what is known of its steps."""
    attempt = max(1, job.attempt)
    try:
        recipe = recipe_for(job.spec, find(job.spec.recipe, folders=settings.recipes).recipe)
        plan = _rendered(job, recipe, attempt)
    except StationmasterError as error:
        what = "is no longer there" if isinstance(error, NotFound) else "can no longer be filled in"
        values = tuple(_value_only(name, value) for name, value in job.spec.parameters.items())
        return JobPlan(
            recipe=job.spec.recipe, attempt=attempt, parameters=values, problem=f"the recipe {job.spec.recipe} {what}"
        )
    events = _of_attempt(store.events.of_jobs([job.id], kinds=_KINDS)[job.id], attempt)
    return JobPlan(
        recipe=recipe.reference,
        attempt=attempt,
        steps=with_progress([_step(step) for step in plan.steps], events),
        parameters=_parameters(recipe, job.spec.parameters),
        container=None if plan.container is None else _container(plan.container),
    )


def _rendered(job: Job, recipe: Recipe, attempt: int) -> Plan:
    spec = job.spec
    return render_plan(
        recipe,
        parameters=spec.parameters,
        job=JobIdentity(id=job.id, name=spec.name, trigger=spec.trigger or "", attempt=attempt),
        machine_root=str(PurePosixPath(_SHOWN_ROOT) / job.id),
        resume_from=_name(spec.resume_from),
        resume_step=spec.resume_step,
        resume_state=_name(spec.resume_state),
    )


def _name(path: str | None) -> str | None:
    """What the file is called on every computer."""
    return None if path is None else PurePosixPath(path).name


def _of_attempt(events: list[Event], attempt: int) -> list[Event]:
    """Those behind the last move into this attempt."""
    begins = [at for at, one in enumerate(events) if one.kind == "state" and one.payload.get("attempt") != attempt]
    return events[begins[-1] + 1 :] if begins else events


def _step(step: PlanStep) -> RunStep:
    return RunStep(
        name=step.name,
        argv=step.argv,
        environment=tuple(step.env),
        secrets=step.secrets,
        tries=step.tries,
        timeout_seconds=step.timeout_seconds,
        training=step.training,
        contained=step.contained,
        optional=step.optional,
    )


def _container(container: PlanContainer) -> UsedContainer:
    return UsedContainer(
        image=container.image,
        engine=container.engine,
        memory_bytes=container.memory_bytes,
        shm_bytes=container.shm_bytes,
        network=container.network,
    )


def _parameters(recipe: Recipe, values: Mapping[str, Any]) -> tuple[UsedParameter, ...]:
    """In the recipe's order, then those that it no longer has."""
    known = tuple(
        UsedParameter(
            name=name,
            value=values.get(name, parameter.default),
            default=parameter.default,
            help=parameter.help,
            is_changed=values.get(name, parameter.default) != parameter.default,
        )
        for name, parameter in recipe.parameters.items()
    )
    return (*known, *(_value_only(name, value) for name, value in values.items() if name not in recipe.parameters))


def _value_only(name: str, value: Any) -> UsedParameter:
    return UsedParameter(name=name, value=value, default=None, help="", is_changed=False)
