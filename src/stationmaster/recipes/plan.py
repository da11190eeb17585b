"""The plan of one attempt: a recipe filled in for a job, in the form that trackside runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from stationmaster.errors import RecipeInvalid, UserError
from stationmaster.recipes.configs import CONFIG_FOLDER, ConfigFile, filled_in
from stationmaster.recipes.parameters import ParameterValue, is_plain_text
from stationmaster.recipes.schema import HEALTH_STEP, Argument, Output, Recipe, Step, inside
from stationmaster.recipes.shell import script_arguments
from stationmaster.recipes.templating import Names, TemplateFault, Values, evaluate, render

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """What a plan says about the job that it belongs to."""

    id: str
    name: str
    trigger: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One command, ready to run."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    timeout_seconds: float
    tries: int
    backoff_seconds: tuple[float, ...]
    expect: tuple[str, ...]
    training: bool
    stop_signal: str
    secrets: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The step as trackside reads it."""
        return {
            "name": self.name,
            "argv": list(self.argv),
            "env": dict(self.env),
            "cwd": self.cwd,
            "timeout_seconds": self.timeout_seconds,
            "tries": self.tries,
            "backoff_seconds": list(self.backoff_seconds),
            "expect": list(self.expect),
            "training": self.training,
            "stop_signal": self.stop_signal,
            "secrets": list(self.secrets),
        }


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
        }


def render_plan(
    recipe: Recipe,
    *,
    parameters: Mapping[str, ParameterValue],
    job: JobIdentity,
    machine_root: str,
    resume_from: str | None = None,
) -> Plan:
    """The plan of `job` on a machine whose job folder is `machine_root`.

    `parameters` are those that `resolve` returned. `resume_from` is a checkpoint on the machine, absolute or below
    the job folder. Raises UserError if the recipe cannot resume or if a value cannot be an argument, RecipeInvalid if
    a template cannot be filled in.
    """
    if resume_from is not None and recipe.resume is None:
        raise UserError(f"{recipe.reference} cannot go on from a checkpoint", hint="start it from the beginning")
    values = _values(parameters, job, PurePosixPath(machine_root), resume_from)
    try:
        steps = tuple(_rendered(recipe, step, values, resuming=resume_from is not None) for step in _steps(recipe))
        configs = tuple(filled_in(config, values) for config in recipe.configs)
    except TemplateFault as fault:
        raise RecipeInvalid(f"{recipe.reference}: {fault}") from None
    return Plan(
        job=job.id,
        attempt=job.attempt,
        steps=steps,
        outputs=recipe.outputs,
        stop_grace_seconds=recipe.stop_grace,
        configs=configs,
    )


def known_names(recipe: Recipe) -> Names:
    """What the templates of `recipe` may use."""
    return {
        "job": frozenset({"id", "name", "trigger", "root"}),
        "dataset": frozenset({"dir"}),
        "output": frozenset({"dir"}),
        "recipe": frozenset({"dir"}),
        "config": frozenset({"dir"}),
        "work": frozenset({"dir"}),
        "resume": frozenset({"checkpoint"}),
        "parameters": frozenset(recipe.parameters),
    }


def time_names(recipe: Recipe) -> Names:
    """What the expressions of the time model may use."""
    return {"dataset": frozenset({"images"}), "parameters": frozenset(recipe.parameters)}


def _values(
    parameters: Mapping[str, ParameterValue], job: JobIdentity, root: PurePosixPath, resume_from: str | None
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
        "resume": {"checkpoint": "" if resume_from is None else str(root / resume_from)},
        "parameters": parameters,
    }


def _steps(recipe: Recipe) -> Iterator[Step]:
    """Everything that runs, in order: the trainer is put in place, then looked at, then used."""
    yield from recipe.bootstrap
    if recipe.health is not None:
        yield Step(name=HEALTH_STEP, argv=recipe.health.argv, timeout=recipe.health.timeout)
    yield from recipe.steps


def _rendered(recipe: Recipe, step: Step, values: Values, *, resuming: bool) -> PlanStep:
    arguments = list(_argv(step.argv, values)) if step.shell is None else list(_script(step.shell, values))
    if resuming and step.training and recipe.resume:
        arguments += _argv(recipe.resume.argv, values)
    return PlanStep(
        name=step.name,
        argv=tuple(arguments),
        env={name: _text(text, values) for name, text in step.env.items()},
        cwd=step.cwd,
        timeout_seconds=step.timeout,
        tries=step.tries,
        backoff_seconds=step.backoff,
        expect=tuple(_path(recipe, text, values) for text in step.expect),
        training=step.training,
        stop_signal=recipe.stop_signal,
        secrets=step.secrets,
    )


def _argv(arguments: Iterable[Argument], values: Values) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, str):
            yield _text(argument, values)
        elif evaluate(argument.when, values):
            yield from (_text(text, values) for text in argument.argv)


def _script(template: str, values: Values) -> Iterator[str]:
    for argument in script_arguments(template, values):
        yield _plain(argument, template)


def _text(template: str, values: Values) -> str:
    return _plain(render(template, values), template)


def _plain(text: str, template: str) -> str:
    if not is_plain_text(text):
        raise UserError(f"a value for `{template}` has NUL or broken characters", hint="write it in plain text")
    return text


def _path(recipe: Recipe, template: str, values: Values) -> str:
    try:
        return inside(_text(template, values))
    except ValueError as error:
        hint = f"write `{template}` with the filter: {{{{ job.name | filename }}}}"
        raise RecipeInvalid(f"{recipe.reference}: {error}", hint=hint) from None
