"""What a recipe runs: steps, the health check, samples, and how a training is asked to save and to stop."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from stationmaster.durations import Duration
from stationmaster.recipes.fields import STEP_NAME, Expression, InsidePath, Part, StepPattern, Template, VariableName

Positive = Annotated[Duration, Field(gt=0)]
Signal = Literal["TERM", "INT", "HUP", "USR1", "USR2"]


class When(Part):
    """Arguments that are left out unless an expression is true."""

    when: Expression
    argv: Annotated[tuple[Template, ...], Field(min_length=1)]


def _argument_kind(value: object) -> str:
    return "arguments" if isinstance(value, dict | When) else "argument"


Argument = Annotated[
    Annotated[Template, Tag("argument")] | Annotated[When, Tag("arguments")], Discriminator(_argument_kind)
]


class RecipeStep(Part):
    """One command on the machine: `argv`, which no shell reads, or a `shell` script that gets values as data."""

    name: str = Field(pattern=STEP_NAME)
    argv: tuple[Argument, ...] = ()
    """The program and its arguments, each passed unchanged."""
    shell: Template | None = None
    """A script for /bin/sh instead of argv. Write values outside quotes: each arrives as one quoted word."""
    env: dict[VariableName, Template] = Field(default={})
    cwd: InsidePath = "work"
    timeout: Positive = 86_400.0
    tries: int = Field(default=1, ge=1, le=3)
    """Total number of tries. A permanent error, for example in the configuration, is not retried."""
    backoff: Annotated[tuple[Duration, ...], Field(min_length=1)] = (5.0, 30.0)
    """Pauses before the second, third, … try; the last one repeats."""
    expect: tuple[Template, ...] = ()
    """Files that must exist when the step is done; patterns inside the job's folder."""
    training: bool = False
    """Whether this step is the training, whose progress is watched."""
    secrets: tuple[VariableName, ...] = ()
    """Names of secrets that this step gets as environment variables."""
    outside: bool = False
    """With a container runtime: run this step on the machine itself, outside the container."""

    @model_validator(mode="after")
    def _one_command(self) -> RecipeStep:
        if bool(self.argv) == (self.shell is not None):
            raise ValueError("a step needs either `argv` or `shell`")
        return self


class HealthCheck(Part):
    """A command that checks whether the machine can train: its exit code must be 0."""

    argv: Annotated[tuple[Argument, ...], Field(min_length=1)]
    timeout: Positive = 300.0
    every: Annotated[Duration, Field(ge=1)] | None = None
    """Interval at which it is repeated while the steps run; a failure then only raises an alert. Without it, the check
    runs once, after the bootstrap."""


class Request(Part):
    """How a running training is asked for something: by exactly one of these."""

    signal: Signal | None = None
    """Sent to the training's own process, not to its children."""
    touch: Template | None = None
    """Or a file that is created in the job's folder; the trainer looks for it."""
    argv: tuple[Argument, ...] = ()
    """Or a command that runs beside the training, in the same place; exit code 0 means that the training was asked."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if [self.signal is not None, self.touch is not None, bool(self.argv)].count(True) != 1:
            raise ValueError("exactly one of `signal`, `touch` and `argv` is needed")
        return self


class SaveRequest(Request):
    """How a running training is asked for a checkpoint, and what proves that it was written."""

    proof: Template
    """A pattern in the job's folder: saved once a file of it is new or changed, and whole. Of several files that make
    one checkpoint, name the one that is written last."""
    timeout: Positive = 180.0
    """How long the training may take to save; after that it is stopped without."""


class SampleRequest(Request):
    """How a running training is asked for samples; new files of the samples' pattern prove that it made them."""

    timeout: Positive = 600.0
    """How long it may take; the training continues in any case."""


class Samples(Part):
    """Samples of what the model makes: pictures or texts from the trainer, or from a command that runs after it."""

    pattern: InsidePath
    """Where they are; * stays within a folder, ** crosses folders."""
    step: StepPattern | None = None
    """A regular expression whose one group is the training step in the file's name."""
    argv: tuple[Argument, ...] = ()
    """A command that makes them after the last step if the trainer made none. Its failure does not fail the job."""
    env: dict[VariableName, Template] = Field(default={})
    timeout: Positive = 1_800.0
    secrets: tuple[VariableName, ...] = ()
    """Names of secrets that the command gets as environment variables."""
    now: SampleRequest | None = None
    """How a running training is asked for samples, if the trainer supports it."""


class StopRules(Part):
    """How a training is stopped before it is finished."""

    signal: Signal = "TERM"
    """The signal that its processes get."""
    grace: Positive = 10.0
    """How long they have before they are killed."""
    save: SaveRequest | None = None
    """How the training is asked for a checkpoint first, if the trainer supports it."""
