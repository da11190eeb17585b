"""The plan of one attempt: a recipe filled in for a job, in the form that trackside runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from stationmaster.errors import RecipeInvalid, UserError
from stationmaster.recipes.configs import CONFIG_FOLDER, ConfigFile, filled_in
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.plan_container import PlanContainer, filled_in_container
from stationmaster.recipes.plan_steps import (
    PlanHealth,
    PlanRequest,
    PlanStep,
    cleanup_steps,
    health_check,
    main_steps,
    sample_request,
    save_request,
)
from stationmaster.recipes.schema import Output, Recipe
from stationmaster.recipes.templating import Names, TemplateFault, Values, prepared

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """The job that a plan belongs to."""

    id: str
    name: str
    trigger: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that trackside does for one attempt: durations, never instants."""

    job: str
    attempt: int
    steps: tuple[PlanStep, ...]
    outputs: tuple[Output, ...]
    stop_grace_seconds: float
    configs: tuple[ConfigFile, ...] = ()
    """Files that are sent before the steps run."""
    container: PlanContainer | None = None
    health: PlanHealth | None = None
    """Repeated while the steps run."""
    save: PlanRequest | None = None
    sample: PlanRequest | None = None
    cleanup: tuple[PlanStep, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of all secrets that the steps need."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.secrets))

    def as_json(self) -> dict[str, Any]:
        """The content of plan.json."""
        return {
            "format": FORMAT,
            "job": self.job,
            "attempt": self.attempt,
            "steps": [step.as_json() for step in self.steps],
            "outputs": [{"pattern": output.pattern, "kind": output.kind.value} for output in self.outputs],
            "stop_grace_seconds": self.stop_grace_seconds,
            "container": self.container and self.container.as_json(),
            "health": self.health and self.health.as_json(),
            "save": self.save and self.save.as_json(),
            "sample": self.sample and self.sample.as_json(),
            "cleanup": [step.as_json() for step in self.cleanup],
        }


def render_plan(
    recipe: Recipe,
    *,
    parameters: Mapping[str, ParameterValue],
    job: JobIdentity,
    machine_root: str,
    resume_from: str | None = None,
    resume_step: int | None = None,
    resume_state: str | None = None,
) -> Plan:
    """The plan of `job` on a machine whose job folder is `machine_root`.

    `parameters` are those that `resolve` returned. `resume_from` is a checkpoint on the machine, absolute or below
    the job folder, `resume_step` the step at which it was made, if known, `resume_state` what the trainer reads beside
    it. Raises UserError if the recipe cannot resume or if a value cannot be an argument, RecipeInvalid if a template
    cannot be filled in.
    """
    if resume_from is not None and recipe.resume is None:
        raise UserError(f"{recipe.reference} cannot resume from a checkpoint", hint="start it from the beginning")
    values = prepared(_values(parameters, job, PurePosixPath(machine_root), resume_from, resume_step, resume_state))
    try:
        return Plan(
            job=job.id,
            attempt=job.attempt,
            steps=tuple(main_steps(recipe, values, resuming=resume_from is not None)),
            outputs=recipe.outputs,
            stop_grace_seconds=recipe.stop.grace,
            configs=tuple(filled_in(config, values) for config in recipe.configs),
            container=filled_in_container(recipe, values),
            health=health_check(recipe, values),
            save=save_request(recipe, values),
            sample=sample_request(recipe, values),
            cleanup=tuple(cleanup_steps(recipe, values)),
        )
    except TemplateFault as fault:
        raise RecipeInvalid(f"{recipe.reference}: {fault}") from None


def render_configs(
    recipe: Recipe, *, parameters: Mapping[str, ParameterValue], job: JobIdentity, machine_root: str
) -> tuple[ConfigFile, ...]:
    """The config files of a plan that does not resume, without the plan. Raises as `render_plan` does."""
    values = prepared(_values(parameters, job, PurePosixPath(machine_root), None, None, None))
    try:
        return tuple(filled_in(config, values) for config in recipe.configs)
    except TemplateFault as fault:
        raise RecipeInvalid(f"{recipe.reference}: {fault}") from None


def known_names(recipe: Recipe) -> Names:
    """What the templates of `recipe` may use."""
    return {
        "job": frozenset({"id", "name", "trigger", "root"}),
        "dataset": frozenset({"dir"}),
        "output": frozenset({"dir"}),
        "recipe": frozenset({"dir"}),
        "config": frozenset({"dir"}),
        "work": frozenset({"dir"}),
        "resume": frozenset({"checkpoint", "step", "state"}),
        "parameters": frozenset(recipe.parameters),
    }


def again_names(recipe: Recipe) -> Names:
    """What the arguments of a retry may use."""
    return {**known_names(recipe), "again": frozenset({"path", "folder"})}


def time_names(recipe: Recipe) -> Names:
    """What the expressions of the time model may use."""
    return {"dataset": frozenset({"images"}), "parameters": frozenset(recipe.parameters)}


def memory_names(recipe: Recipe) -> Names:
    """What the expressions of the memory model may use."""
    return {"parameters": frozenset(recipe.parameters)}


def _values(
    parameters: Mapping[str, ParameterValue],
    job: JobIdentity,
    root: PurePosixPath,
    resume_from: str | None,
    resume_step: int | None,
    resume_state: str | None,
) -> Values:
    if not root.is_absolute():
        raise UserError(f"the job folder on the machine must be an absolute path, not {str(root)!r}")
    return {
        "job": {"id": job.id, "name": job.name, "trigger": job.trigger, "root": str(root)},
        "dataset": {"dir": str(root / "dataset")},
        "output": {"dir": str(root / "output")},
        "recipe": {"dir": str(root / "recipe")},
        "config": {"dir": str(root / CONFIG_FOLDER)},
        "work": {"dir": str(root / "work")},
        # empty, not missing: `when: resume.checkpoint` must read as no
        "resume": {
            "checkpoint": "" if resume_from is None else str(root / resume_from),
            "step": 0 if resume_from is None else resume_step or 0,
            "state": "" if resume_from is None or resume_state is None else str(root / resume_state),
        },
        "parameters": parameters,
    }
