"""The recipe file's schema: what a recipe may say, each field with its meaning."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, model_validator

from stationmaster.durations import Duration

RECIPE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_PARAMETER_NAME = r"^[a-z][a-z0-9_]{0,62}$"
_STEP_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
HEALTH_STEP = "health"
_IMAGE = r"^[A-Za-z0-9][A-Za-z0-9./:_-]{0,300}(@sha256:[0-9a-f]{64})?$"
_VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,126}$"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe file, for editors and other tools."""
    return Recipe.model_json_schema()


def inside(text: str) -> str:
    """`text` if it is a path below the job's folder; raises ValueError if it is empty, absolute or leaves it."""
    path = PurePosixPath(text)
    if not text or "\0" in text or path.is_absolute() or ".." in path.parts or path == PurePosixPath("."):
        raise ValueError(f"{text!r} must be a path inside the job's folder, without a leading / and without ..")
    return text


def _regular_expression(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if groups != 1:
        raise ValueError("must have exactly one group, around the step's digits")
    return text


Template = Annotated[str, Field(max_length=10_000)]
Expression = Annotated[str, Field(max_length=1_000, min_length=1)]
InsidePath = Annotated[str, Field(max_length=1_000), AfterValidator(inside)]
VariableName = Annotated[str, Field(pattern=_VARIABLE_NAME)]


class _Part(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


class Needs(_Part):
    """The machine that the training needs."""

    gpus: int = Field(default=1, ge=0, le=64)
    """How many GPUs; 0 runs on any machine."""
    vram_gib: float = Field(default=0.0, ge=0)
    """Memory that each GPU must have."""
    disk_gib: float = Field(default=10.0, gt=0)
    """Room for the dataset, base model and outputs."""


class _Parameter(_Part):
    help: str = Field(min_length=1)
    """One sentence for the person who sets it."""


class IntParameter(_Parameter):
    """A whole number."""

    type: Literal["int"]
    default: int | None = None
    min: int | None = None
    max: int | None = None


class FloatParameter(_Parameter):
    """A number."""

    type: Literal["float"]
    default: float | None = None
    min: float | None = None
    max: float | None = None


class StrParameter(_Parameter):
    """A text."""

    type: Literal["str"]
    default: str | None = None
    max_length: int = Field(default=1_000, ge=1, le=100_000)


class BoolParameter(_Parameter):
    """true or false."""

    type: Literal["bool"]
    default: bool | None = None


class ChoiceParameter(_Parameter):
    """One of several texts."""

    type: Literal["choice"]
    choices: Annotated[tuple[str, ...], Field(min_length=1)]
    default: str | None = None


Parameter = Annotated[
    IntParameter | FloatParameter | StrParameter | BoolParameter | ChoiceParameter, Field(discriminator="type")
]


class Dataset(_Part):
    """What a dataset must be for this recipe."""

    kind: Literal["images", "text"] = "images"
    min_images: int = Field(default=10, ge=1)
    """Of an image dataset, at least."""
    recommended_images: int | None = Field(default=None, ge=1)
    """Fewer is a warning."""
    captions: Literal["required", "optional", "none"] = "optional"
    min_side: int = Field(default=0, ge=0)
    """The shorter side of every image, in pixels, at least."""
    recommended_side: int | None = Field(default=None, ge=1)
    """A shorter side below is a warning."""
    control_folder: InsidePath | None = None
    """Sub-folder that holds, under the same name, the image that each image was made from."""
    subfolders: bool = True
    """Whether the trainer looks into sub-folders."""
    text_format: Literal["text", "prompt", "chat"] | None = None
    """What each line of a text dataset is; any of them where nothing is said."""
    min_rows: int = Field(default=10, ge=1)
    """Lines of a text dataset, at least."""


class When(_Part):
    """Arguments that are left out unless an expression holds."""

    when: Expression
    argv: Annotated[tuple[Template, ...], Field(min_length=1)]


def _argument_kind(value: object) -> str:
    return "arguments" if isinstance(value, dict | When) else "argument"


Argument = Annotated[
    Annotated[Template, Tag("argument")] | Annotated[When, Tag("arguments")], Discriminator(_argument_kind)
]


class Step(_Part):
    """One command on the machine: `argv`, which no shell reads, or a `shell` script that gets values as data."""

    name: str = Field(pattern=_STEP_NAME)
    argv: tuple[Argument, ...] = ()
    """The program and its arguments, each given to it as it is."""
    shell: Template | None = None
    """A script for /bin/sh instead of argv. Write values outside quotes: each arrives as one quoted word."""
    env: dict[VariableName, Template] = {}
    cwd: InsidePath = "work"
    timeout: Annotated[Duration, Field(gt=0)] = 86_400.0
    tries: int = Field(default=1, ge=1, le=20)
    backoff: Annotated[tuple[Duration, ...], Field(min_length=1)] = (5.0, 30.0)
    """Pauses before the second, third, … try; the last one repeats."""
    expect: tuple[Template, ...] = ()
    """Files that must be there when the step is done; patterns inside the job's folder."""
    training: bool = False
    """Whether this is the step whose progress is watched."""
    secrets: tuple[VariableName, ...] = ()
    """Names of secrets that this step gets as environment variables."""

    @model_validator(mode="after")
    def _one_command(self) -> Step:
        if bool(self.argv) == (self.shell is not None):
            raise ValueError("a step has either `argv` or `shell`")
        return self


class Health(_Part):
    """A command that says, once the bootstrap is done, whether the machine can train: its exit code must be 0."""

    argv: Annotated[tuple[Argument, ...], Field(min_length=1)]
    timeout: Annotated[Duration, Field(gt=0)] = 300.0


class Config(_Part):
    """A file that is written for each job and sent with the recipe. A serialiser writes it: values stay data."""

    path: InsidePath
    """Its place below config.dir."""
    format: Literal["yaml", "toml", "json"]
    data: dict[str, JsonValue]
    """What is in it. A text that is one `{{ … }}` becomes its value with its type; `{when: …, value: …}` may be
    left out."""


class OutputKind(StrEnum):
    """What an output file is to us."""

    CHECKPOINT = "checkpoint"  # a model: never lost
    SAMPLE = "sample"  # a picture or text made during training
    LOG = "log"
    METRICS = "metrics"


class Output(_Part):
    """Files that the training makes and that are brought home."""

    pattern: InsidePath
    """A path pattern inside the job's folder; * stays within a folder, ** crosses folders."""
    kind: OutputKind
    step: Annotated[str, AfterValidator(_regular_expression)] | None = None
    """A regular expression whose one group is the training step in the file's name."""


class Resume(_Part):
    """How the training goes on from a checkpoint."""

    argv: tuple[Argument, ...] = ()
    """Added to the training step's arguments when there is a checkpoint to go on from; may be empty where a step or
    config uses resume.checkpoint."""


class TimeModel(_Part):
    """How long a training takes: fixed + per image x images + per step x steps x the GPU's factor."""

    steps: Expression = "parameters.steps"
    seconds_per_step: Expression | float
    seconds_per_image: Annotated[float, Field(ge=0)] = 0.0
    fixed: Duration = 0.0
    reference_gpu: str | None = None
    """The GPU on which seconds_per_step was measured; without one the time does not depend on the GPU."""
    spread: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """How far, as a share, a usual run may be from the expected time."""


class Recipe(_Part):
    """One way to train, as declared in recipe.yaml."""

    name: str = Field(pattern=f"^{RECIPE_NAME.pattern}$")
    version: int = Field(ge=1)
    title: str = Field(min_length=1, max_length=80)
    description: str = Field(min_length=1)
    framework: str = Field(default="auto", pattern=_STEP_NAME)
    """Which trainer's output this looks like: a hint for the log parser."""
    runtime: Literal["host"] = "host"
    """Where steps run: directly on the machine."""
    image: str | None = Field(default=None, pattern=_IMAGE)
    """The container image to rent a machine with; providers have their own where nothing is said."""
    needs: Needs = Needs()
    parameters: dict[Annotated[str, Field(pattern=_PARAMETER_NAME)], Parameter] = {}
    dataset: Dataset = Dataset()
    files: tuple[InsidePath, ...] = ()
    """Files beside recipe.yaml that go to the machine, into the folder recipe.dir."""
    configs: tuple[Config, ...] = ()
    """Files that are filled in for each job, into the folder config.dir."""
    bootstrap: tuple[Step, ...] = ()
    """Steps that put the trainer in place; repeating them must change nothing. They get no secrets."""
    health: Health | None = None
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    outputs: Annotated[tuple[Output, ...], Field(min_length=1)]
    stop_signal: Literal["TERM", "INT", "HUP", "USR1", "USR2"] = "TERM"
    stop_grace: Annotated[Duration, Field(gt=0)] = 10.0
    resume: Resume | None = None
    time: TimeModel

    @property
    def reference(self) -> str:
        """How jobs name it: name@version."""
        return f"{self.name}@{self.version}"

    @property
    def training_step(self) -> Step:
        """The step whose progress is watched."""
        return next(step for step in self.steps if step.training)

    @model_validator(mode="after")
    def _one_training_step(self) -> Recipe:
        names = [step.name for step in (*self.bootstrap, *self.steps)] + [HEALTH_STEP] * (self.health is not None)
        if len(set(names)) != len(names):
            raise ValueError("two steps have the same name")
        if any(step.training or step.secrets for step in self.bootstrap):
            raise ValueError("a bootstrap step neither trains nor gets secrets")
        if sum(step.training for step in self.steps) != 1:
            raise ValueError("exactly one step must say `training: true`")
        if not any(output.kind is OutputKind.CHECKPOINT for output in self.outputs):
            raise ValueError("one of the outputs must be of kind checkpoint: the model that is brought home")
        return self
