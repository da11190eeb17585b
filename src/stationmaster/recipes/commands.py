"""What a recipe runs: steps, the health check, samples, and how a training is asked to save and to end."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from stationmaster.durations import Duration
from stationmaster.recipes.fields import STEP_NAME, Expression, InsidePath, Part, StepPattern, Template, VariableName

Positive = Annotated[Duration, Field(gt=0)]
Signal = Literal["TERM", "INT", "HUP", "USR1", "USR2"]


class When(Part):
    """Arguments that are left out unless an expression holds."""

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
    """The program and its arguments, each given to it as it is."""
    shell: Template | None = None
    """A script for /bin/sh instead of argv. Write values outside quotes: each arrives as one quoted word."""
    env: dict[VariableName, Template] = Field(default={})
    cwd: InsidePath = "work"
    timeout: Positive = 86_400.0
    tries: int = Field(default=1, ge=1, le=3)
    """How often it is tried in all. An error that cannot pass, as of the configuration, is tried once."""
    backoff: Annotated[tuple[Duration, ...], Field(min_length=1)] = (5.0, 30.0)
    """Pauses before the second, third, … try; the last one repeats."""
    expect: tuple[Template, ...] = ()
    """Files that must be there when the step is done; patterns inside the job's folder."""
    training: bool = False
    """Whether this is the step whose progress is watched."""
    secrets: tuple[VariableName, ...] = ()
    """Names of secrets that this step gets as environment variables."""
    outside: bool = False
    """With a container runtime: run this step on the machine itself."""

    @model_validator(mode="after")
    def _one_command(self) -> RecipeStep:
        if bool(self.argv) == (self.shell is not None):
            raise ValueError("a step has either `argv` or `shell`")
        return self


class HealthCheck(Part):
    """A command that says whether the machine can train: its exit code must be 0."""

    argv: Annotated[tuple[Argument, ...], Field(min_length=1)]
    timeout: Positive = 300.0
    every: Annotated[Duration, Field(ge=1)] | None = None
    """Asked so often while the steps run; a failure is an alert and ends nothing. Else once, after the bootstrap."""


class Request(Part):
    """How a running training is asked for something: in exactly one of these ways."""

    signal: Signal | None = None
    """Sent to the training's own process, not to its children."""
    touch: Template | None = None
    """Or a file in the job's folder that is made; the trainer looks for it."""
    argv: tuple[Argument, ...] = ()
    """Or a command that is run beside the training, where the training runs; its exit code 0 means that it is asked."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if [self.signal is not None, self.touch is not None, bool(self.argv)].count(True) != 1:
            raise ValueError("a training is asked by one of `signal`, `touch` and `argv`")
        return self


class SaveRequest(Request):
    """How a running training is asked for a checkpoint, and what proves that it was written."""

    proof: Template
    """A pattern in the job's folder: saved once a file of it is new or changed, and whole. Of several files that make
    one checkpoint, name the one that is written last."""
    timeout: Positive = 180.0
    """How long the training may take to save; then it is ended without."""


class SampleRequest(Request):
    """How a running training is asked for samples; new files of the samples' pattern prove that it made them."""

    timeout: Positive = 600.0
    """How long it may take; the training goes on in any case."""


class Samples(Part):
    """What shows people the model: pictures or texts that the trainer makes, or a command after it."""

    pattern: InsidePath
    """Where they lie; * stays within a folder, ** crosses folders."""
    step: StepPattern | None = None
    """A regular expression whose one group is the training step in the file's name."""
    argv: tuple[Argument, ...] = ()
    """Makes them after the last step if the trainer has left none. Its failure does not fail the job."""
    env: dict[VariableName, Template] = Field(default={})
    timeout: Positive = 1_800.0
    secrets: tuple[VariableName, ...] = ()
    """Names of secrets that the command gets as environment variables."""
    now: SampleRequest | None = None
    """Asked for samples when a person wants to see some, where the trainer can do that."""


class StopRules(Part):
    """How a training ends before its time."""

    signal: Signal = "TERM"
    """What its processes are sent."""
    grace: Positive = 10.0
    """How long they have before they are killed."""
    save: SaveRequest | None = None
    """Asked for a checkpoint first, where the trainer can do that."""
