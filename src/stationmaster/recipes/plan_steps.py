"""The commands of a plan: a recipe's steps, checks and requests, filled in for one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stationmaster.errors import RecipeInvalid, UserError
from stationmaster.recipes.parameters import is_plain_text
from stationmaster.recipes.schema import (
    HEALTH_STEP,
    IMAGE_STEP,
    SAMPLES_STEP,
    Argument,
    Recipe,
    RecipeStep,
    SampleRequest,
    Samples,
    SaveRequest,
    inside,
)
from stationmaster.recipes.shell import script_arguments
from stationmaster.recipes.templating import Values, evaluate, render

_FETCH_IMAGE = "{ENGINE} image inspect {IMAGE} >/dev/null 2>&1 || {ENGINE} pull {IMAGE}"
_IMAGE_SECONDS = 7_200.0
_IMAGE_TRIES = 3
# What only the machine knows: trackside replaces these marks by it.
AGAIN_PATH = "<again.path>"
AGAIN_FOLDER = "<again.folder>"


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
    contained: bool = False
    """Whether it runs in the plan's container."""
    unless: str | None = None
    """Skip the step if a file of this pattern exists already."""
    optional: bool = False
    """Whether the plan continues when it fails."""
    again: PlanAgain | None = None
    """What a retry gets in addition."""
    attach: Mapping[str, Any] | None = None
    """The training that runs already, if the step only watches one."""

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
            "contained": self.contained,
            "unless": self.unless,
            "optional": self.optional,
            "again": self.again and self.again.as_json(),
            **({} if self.attach is None else {"attach": dict(self.attach)}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanHealth:
    """The health check that is repeated while the steps run."""

    step: PlanStep
    every_seconds: float

    def as_json(self) -> dict[str, Any]:
        return {**self.step.as_json(), "every_seconds": self.every_seconds}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """How the running training is asked for something, and the files that prove that it did it."""

    signal: str | None
    touch: str | None
    argv: tuple[str, ...]
    proof: str
    timeout_seconds: float

    def as_json(self) -> dict[str, Any]:
        """The request as trackside reads it."""
        return {
            "signal": self.signal,
            "touch": self.touch,
            "argv": list(self.argv),
            "proof": self.proof,
            "timeout_seconds": self.timeout_seconds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAgain:
    """What a retry of the training step gets in addition, if the try before left a checkpoint."""

    pattern: str
    argv: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As trackside reads it; it replaces the marks by what it finds."""
        return {"pattern": self.pattern, "argv": list(self.argv), "path": AGAIN_PATH, "folder": AGAIN_FOLDER}


def main_steps(recipe: Recipe, values: Values, *, resuming: bool) -> Iterator[PlanStep]:
    """Everything that runs, in order: install the trainer, check the machine, train, make samples."""
    for step in recipe.bootstrap:
        yield replace(_rendered(recipe, step, values), contained=False)
    if recipe.container is not None:
        yield _image_step(recipe)
    if recipe.health is not None:
        yield _health_step(recipe, values)
    for step in recipe.steps:
        yield _rendered(recipe, step, values, resuming=resuming)
    if recipe.samples is not None and recipe.samples.argv:
        yield _samples_step(recipe, recipe.samples, values)


def training_places(recipe: Recipe) -> list[int]:
    """The places of the steps that train among `main_steps`, whatever the job is."""
    before = len(recipe.bootstrap) + (recipe.container is not None) + (recipe.health is not None)
    return [place for place, step in enumerate(recipe.steps, start=before) if step.training]


def cleanup_steps(recipe: Recipe, values: Values) -> Iterator[PlanStep]:
    """What runs before the machine is released; a failed step does not prevent the next."""
    return (replace(_rendered(recipe, step, values), optional=True) for step in recipe.cleanup)


def health_check(recipe: Recipe, values: Values) -> PlanHealth | None:
    if recipe.health is None or recipe.health.every is None:
        return None
    return PlanHealth(step=_health_step(recipe, values), every_seconds=recipe.health.every)


def save_request(recipe: Recipe, values: Values) -> PlanRequest | None:
    """How the training is asked for a checkpoint."""
    save = recipe.stop.save
    return None if save is None else _request(recipe, save, values, proof=_path(recipe, save.proof, values))


def sample_request(recipe: Recipe, values: Values) -> PlanRequest | None:
    """How the training is asked for samples."""
    if recipe.samples is None or recipe.samples.now is None:
        return None
    return _request(recipe, recipe.samples.now, values, proof=recipe.samples.pattern)


def _request(recipe: Recipe, request: SaveRequest | SampleRequest, values: Values, *, proof: str) -> PlanRequest:
    return PlanRequest(
        signal=request.signal,
        touch=None if request.touch is None else _path(recipe, request.touch, values),
        argv=tuple(_argv(request.argv, values)),
        proof=proof,
        timeout_seconds=request.timeout,
    )


def filled_in_text(template: str, values: Values) -> str:
    """A text with its values; raises UserError if it could not be an argument of a program."""
    return _plain(render(template, values), template)


def _image_step(recipe: Recipe) -> PlanStep:
    """Pulls the image, unless it is on the machine already."""
    assert recipe.container is not None
    fetch = _FETCH_IMAGE.format(ENGINE='"${1}"', IMAGE='"${2}"')
    return PlanStep(
        name=IMAGE_STEP,
        argv=("/bin/sh", "-euc", fetch, "sh", recipe.runtime, recipe.container.image),
        env={},
        cwd="work",
        timeout_seconds=_IMAGE_SECONDS,
        tries=_IMAGE_TRIES,
        backoff_seconds=(10.0, 60.0),
        expect=(),
        training=False,
        stop_signal="TERM",
        secrets=(),
    )


def _health_step(recipe: Recipe, values: Values) -> PlanStep:
    assert recipe.health is not None
    return _rendered(
        recipe, RecipeStep(name=HEALTH_STEP, argv=recipe.health.argv, timeout=recipe.health.timeout), values
    )


def _samples_step(recipe: Recipe, samples: Samples, values: Values) -> PlanStep:
    step = RecipeStep(
        name=SAMPLES_STEP, argv=samples.argv, env=samples.env, timeout=samples.timeout, secrets=samples.secrets
    )
    return replace(_rendered(recipe, step, values), unless=samples.pattern, optional=True)


def _rendered(recipe: Recipe, step: RecipeStep, values: Values, *, resuming: bool = False) -> PlanStep:
    return PlanStep(
        name=step.name,
        argv=_command(recipe, step, values, resuming=resuming),
        env={name: filled_in_text(text, values) for name, text in step.env.items()},
        cwd=step.cwd,
        timeout_seconds=step.timeout,
        tries=step.tries,
        backoff_seconds=step.backoff,
        expect=tuple(_path(recipe, text, values) for text in step.expect),
        training=step.training,
        stop_signal=recipe.stop.signal,
        secrets=step.secrets,
        contained=recipe.container is not None and not step.outside,
        again=_again(recipe, values) if step.training else None,
    )


def _again(recipe: Recipe, values: Values) -> PlanAgain | None:
    again = recipe.resume.again if recipe.resume else None
    if again is None:
        return None
    marked = {**values, "again": {"path": AGAIN_PATH, "folder": AGAIN_FOLDER}}
    return PlanAgain(pattern=_path(recipe, again.pattern, values), argv=tuple(_argv(again.argv, marked)))


def _command(recipe: Recipe, step: RecipeStep, values: Values, *, resuming: bool) -> tuple[str, ...]:
    arguments = list(_argv(step.argv, values)) if step.shell is None else list(_script(step.shell, values))
    if resuming and step.training and recipe.resume:
        arguments += _argv(recipe.resume.argv, values)
    if step.training and recipe.launcher is not None:
        return _with_launcher(recipe, arguments, list(_argv(recipe.launcher_argv, values)))
    return tuple(arguments)


def _with_launcher(recipe: Recipe, command: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """A Python and its script with the recipe's launcher between them, which starts one process per GPU."""
    python, *script = command
    return (python, *_launcher(recipe), *options, *script)


def _launcher(recipe: Recipe) -> tuple[str, ...]:
    """For one machine; a provider that has clusters passes each node its own rank."""
    processes = max(1, recipe.needs.gpus)
    if recipe.launcher == "torchrun":
        return ("-m", "torch.distributed.run", "--standalone", "--nnodes=1", f"--nproc_per_node={processes}")
    several = ("--multi_gpu",) if processes > 1 else ()
    return ("-m", "accelerate.commands.launch", f"--num_processes={processes}", "--num_machines=1", *several)


def _argv(arguments: Iterable[Argument], values: Values) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, str):
            yield filled_in_text(argument, values)
        elif evaluate(argument.when, values):
            yield from (filled_in_text(text, values) for text in argument.argv)


def _script(template: str, values: Values) -> Iterator[str]:
    for argument in script_arguments(template, values):
        yield _plain(argument, template)


def _plain(text: str, template: str) -> str:
    if not is_plain_text(text):
        raise UserError(f"a value for `{template}` has NUL or invalid characters", hint="use plain text")
    return text


def _path(recipe: Recipe, template: str, values: Values) -> str:
    try:
        return inside(filled_in_text(template, values))
    except ValueError as error:
        hint = f"use the filter `filename` in `{template}`, as in {{{{ job.name | filename }}}}"
        raise RecipeInvalid(f"{recipe.reference}: {error}", hint=hint) from None
