"""The schema of the recipe file: each field with its meaning."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from stationmaster.analysis.levers import Lever
from stationmaster.durations import Duration
from stationmaster.recipes.commands import (
    Argument,
    HealthCheck,
    RecipeStep,
    SampleRequest,
    Samples,
    SaveRequest,
    StopRules,
    When,
)
from stationmaster.recipes.containers import Container, Mount
from stationmaster.recipes.field_texts import DescribedSchema
from stationmaster.recipes.fields import (
    IMAGE,
    STEP_NAME,
    Expression,
    InsidePath,
    Part,
    StepPattern,
    Template,
    VariableName,
    inside,
)
from stationmaster.recipes.log_patterns import LogPattern

__all__ = [
    "Again",
    "Argument",
    "Config",
    "Container",
    "Dataset",
    "Gated",
    "HealthCheck",
    "LogPattern",
    "MemoryModel",
    "Mount",
    "Needs",
    "Output",
    "OutputKind",
    "Parameter",
    "Recipe",
    "RecipeStep",
    "Resume",
    "SampleRequest",
    "Samples",
    "SaveRequest",
    "StopRules",
    "TimeModel",
    "When",
    "inside",
    "json_schema",
]

RECIPE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_PARAMETER_NAME = r"^[a-z][a-z0-9_]{0,62}$"
HEALTH_STEP = "health"
IMAGE_STEP = "image"
SAMPLES_STEP = "samples"
_OWN_STEPS = (HEALTH_STEP, IMAGE_STEP, SAMPLES_STEP)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe file, for editors and other tools."""
    return Recipe.model_json_schema(schema_generator=DescribedSchema)


class Needs(Part):
    """The machine that the training needs."""

    gpus: int = Field(default=1, ge=0, le=64)
    """How many GPUs; 0 runs on any machine."""
    vram_gib: float = Field(default=0.0, ge=0)
    """Memory that each GPU must have, at least."""
    disk_gib: float = Field(default=10.0, gt=0)
    """Disk space for the dataset, base model and outputs."""
    cuda: float | None = Field(default=None, ge=1)
    """The least CUDA version that the machine's driver must support, e.g. 12.4."""


class _Parameter(Part):
    help: str = Field(min_length=1)
    """One sentence for the person who sets it."""
    lever: Lever | None = None
    """The setting of the training that it changes, so that advice on a finished run can be applied to it. Not needed
    where a config of a known trainer has the parameter as a value of its own."""


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


class Dataset(Part):
    """What a dataset must be for this recipe."""

    kind: Literal["images", "text"] = "images"
    min_images: int = Field(default=10, ge=1)
    """Least number of images in an image dataset."""
    recommended_images: int | None = Field(default=None, ge=1)
    """Fewer images raise a warning."""
    captions: Literal["required", "optional", "none"] = "optional"
    min_side: int = Field(default=0, ge=0)
    """Least length of the shorter side of every image, in pixels."""
    recommended_side: int | None = Field(default=None, ge=1)
    """A shorter side below this raises a warning; where a parameter has the lever `resolution`, its value counts."""
    control_folder: InsidePath | None = None
    """Sub-folder with the control images: for each image, under the same name, the one it was made from."""
    subfolders: bool = True
    """Whether the trainer looks into sub-folders."""
    text_format: Literal["text", "prompt", "chat"] | None = None
    """What each line of a text dataset must be; without it, any of them."""
    min_rows: int = Field(default=10, ge=1)
    """Least number of lines in a text dataset."""
    pull: bool = True
    """Whether the machine may download a dataset from a bucket directly, with signed URLs."""


class Config(Part):
    """A file that is written for each job and sent with the recipe. A serialiser writes it, so values stay data."""

    path: InsidePath
    """Its path below config.dir."""
    format: Literal["yaml", "toml", "json"]
    data: dict[str, JsonValue]
    """Its content. A text that is a single `{{ … }}` becomes that value with its type; `{when: …, value: …}` is
    left out unless the expression is true."""


class OutputKind(StrEnum):
    """What kind of file an output is."""

    CHECKPOINT = "checkpoint"  # a model: never lost
    SAMPLE = "sample"  # a picture or text made during training
    LOG = "log"
    METRICS = "metrics"
    STATE = "state"  # what the trainer reads beside a checkpoint to resume; never shown or published


class Output(Part):
    """Files that the training makes and that are downloaded."""

    pattern: InsidePath
    """A path pattern inside the job's folder; * stays within a folder, ** crosses folders."""
    kind: OutputKind
    step: StepPattern | None = None
    """A regular expression whose one group is the training step in the file's name."""


@lru_cache(maxsize=256)
def _output(pattern: str, kind: OutputKind, step: str | None) -> Output:
    """The output with these fields; made once, because a recipe's outputs are read again and again."""
    return Output(pattern=pattern, kind=kind, step=step)


class Again(Part):
    """How a retry on the same machine continues from what the try before left."""

    pattern: Template
    """A pattern in the job's folder; if several files make one checkpoint, name the one that is written last."""
    argv: Annotated[tuple[Argument, ...], Field(min_length=1)]
    """Added to the training step's arguments if a file matches the pattern: `again.path` is the newest of them,
    `again.folder` its folder."""


class Resume(Part):
    """How the training resumes from a checkpoint."""

    argv: tuple[Argument, ...] = ()
    """Added to the training step's arguments when there is a checkpoint to resume from; may be empty if a step or
    config uses resume.checkpoint."""
    counts_from_zero: bool = False
    """Whether the trainer counts its steps, and numbers its files, from 0 again; then resume.step is added to them."""
    state: InsidePath | None = None
    """A pattern of the file that the trainer reads beside a checkpoint to continue exactly where it was, such as the
    state of its optimizer. It is downloaded and uploaded together with the checkpoint: resume.state. The trainer must
    read it in a way that cannot run its content."""
    again: Again | None = None
    """For a trainer that does not find its latest checkpoint itself when its step is retried."""


class Gated(Part):
    """A model that is available only to those who have accepted its licence."""

    repository: Template
    """The model on the Hub, as owner/name; any other value is not checked."""
    file: InsidePath = "config.json"
    """The file that is requested to check access."""
    secret: VariableName = "HF_TOKEN"
    """The secret that must have access to it."""


class TimeModel(Part):
    """How long a training takes: fixed + per image x images + per step x steps x the GPU's factor."""

    steps: Expression = "parameters.steps"
    seconds_per_step: Expression | float
    seconds_per_image: Annotated[float, Field(ge=0)] = 0.0
    fixed: Duration = 0.0
    reference_gpu: str | None = None
    """The GPU on which seconds_per_step was measured; without one the time does not depend on the GPU."""
    spread: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """By how much a usual run may differ from the expected time, as a fraction of it."""


class MemoryModel(Part):
    """How much GPU memory a training takes at its peak: base + batch x per item, or `least_gib` where that is more.

    Expressions may use the parameters. All figures are of one GPU, and include what CUDA takes for itself. An
    expression may be `none` for parameters whose need is unknown: then nothing is predicted.
    """

    base_gib: Expression | Annotated[float, Field(ge=0)]
    """With everything loaded and the optimizer's state, without any item of a batch."""
    per_item_gib: Expression | Annotated[float, Field(ge=0)] = 0.0
    """For each item of a batch: activations, at the resolution or context of the parameters."""
    batch: Expression | Annotated[float, Field(ge=0)] = "parameters.batch_size"
    """How many items are on the GPU at the same time."""
    least_gib: Expression | Annotated[float, Field(ge=0)] = 0.0
    """The peak of what does not depend on the batch, such as loading the weights and making samples."""
    spread: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """By how much a run may differ from the expected peak, as a fraction of it."""
    measured_on: str = Field(min_length=1, max_length=200)
    """Where the figures come from: measured on which GPU, or derived from what."""


class Recipe(Part):
    """One way to train, as declared in recipe.yaml."""

    name: str = Field(pattern=f"^{RECIPE_NAME.pattern}$")
    version: int = Field(ge=1)
    title: str = Field(min_length=1, max_length=80)
    description: str = Field(min_length=1)
    framework: str = Field(default="auto", pattern=STEP_NAME)
    """The trainer whose output this is: a hint for the log parser."""
    log_patterns: tuple[LogPattern, ...] = Field(default=(), max_length=50)
    """Regular expressions for output that the log parser does not know, tried on each line in this order."""
    runtime: Literal["host", "docker", "podman"] = "host"
    """Where steps run: directly on the machine, or in a container with this engine."""
    container: Container | None = None
    """The container, if the runtime is docker or podman."""
    image: str | None = Field(default=None, pattern=IMAGE)
    """The container image to rent a machine with, best given with its digest; without it, the provider's own."""
    unpinned_image: str | None = Field(default=None, min_length=1, max_length=500)
    """Why an image of this recipe has no digest; `recipes lint` then does not warn of it."""
    needs: Needs = Needs()
    nodes: int = Field(default=1, ge=1, le=1024)
    """Number of machines that train together. More than one needs a provider with clusters."""
    launcher: Literal["torchrun", "accelerate"] | None = None
    """Starts one process per GPU: inserted between the training step's Python and its script."""
    launcher_argv: tuple[Argument, ...] = ()
    """Further options of the launcher."""
    parameters: dict[Annotated[str, Field(pattern=_PARAMETER_NAME)], Parameter] = Field(default={})
    dataset: Dataset = Dataset()
    gated: tuple[Gated, ...] = ()
    """Models behind a licence; access is checked before anything is rented."""
    hooks: InsidePath | None = None
    """A Python file beside recipe.yaml that runs locally when a job is submitted; it is never sent to a machine."""
    files: tuple[InsidePath, ...] = ()
    """Files beside recipe.yaml that are sent to the machine, into the folder recipe.dir."""
    files_of: str | None = Field(default=None, pattern=f"^{RECIPE_NAME.pattern}@[1-9][0-9]{{0,8}}$")
    """Another recipe in the same registry, as name@version, whose files are sent to the machine as well."""
    configs: tuple[Config, ...] = ()
    """Files that are filled in for each job and sent, into the folder config.dir."""
    bootstrap: tuple[RecipeStep, ...] = ()
    """Steps that install the trainer, always on the machine itself; repeating them must change nothing. They get no
    secrets."""
    health: HealthCheck | None = None
    steps: Annotated[tuple[RecipeStep, ...], Field(min_length=1)]
    declared_outputs: Annotated[tuple[Output, ...], Field(min_length=1, alias="outputs")]
    samples: Samples | None = None
    stop: StopRules = StopRules()
    cleanup: tuple[RecipeStep, ...] = ()
    """Steps that run before the machine is released, also after a failure. They get no secrets."""
    resume: Resume | None = None
    time: TimeModel
    memory: MemoryModel | None = None
    """Predicts the GPU memory of a job; without it nothing is predicted."""

    @property
    def reference(self) -> str:
        """How jobs name it: name@version."""
        return f"{self.name}@{self.version}"

    @property
    def training_step(self) -> RecipeStep:
        """The step whose progress is watched."""
        return next(step for step in self.steps if step.training)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Everything that is downloaded: the declared outputs, the samples, and the state to resume from."""
        found = list(self.declared_outputs)
        if self.samples is not None:
            found.append(_output(self.samples.pattern, OutputKind.SAMPLE, self.samples.step))
        if self.resume is not None and self.resume.state is not None:
            found.append(_output(self.resume.state, OutputKind.STATE, None))
        return tuple(found)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of all secrets that its commands get."""
        given = [name for step in self.steps for name in step.secrets]
        return tuple(dict.fromkeys((*given, *(self.samples.secrets if self.samples else ()))))

    @model_validator(mode="after")
    def _one_training_step(self) -> Recipe:
        names = [step.name for step in (*self.bootstrap, *self.steps, *self.cleanup)]
        if len(set(names)) != len(names):
            raise ValueError("two steps have the same name")
        if taken := next((name for name in names if name in _OWN_STEPS), None):
            raise ValueError(f"the step name {taken} is reserved")
        if any(step.training or step.secrets for step in (*self.bootstrap, *self.cleanup)):
            raise ValueError("a step of bootstrap or cleanup cannot train and gets no secrets")
        if sum(step.training for step in self.steps) != 1:
            raise ValueError("exactly one step needs `training: true`")
        if not any(output.kind is OutputKind.CHECKPOINT for output in self.declared_outputs):
            raise ValueError("at least one output must be of kind checkpoint: the model")
        return self

    @model_validator(mode="after")
    def _container_where_one_is_run(self) -> Recipe:
        if self.runtime == "host" and self.container is not None:
            raise ValueError("`container` needs `runtime: docker` or `runtime: podman`")
        if self.runtime != "host" and self.container is None:
            raise ValueError(f"`runtime: {self.runtime}` needs a `container` with an image")
        return self

    @model_validator(mode="after")
    def _launchable(self) -> Recipe:
        if self.launcher is None and self.launcher_argv:
            raise ValueError("`launcher_argv` needs a `launcher`")
        if self.launcher is None and self.nodes > 1:
            raise ValueError("more than one node needs a `launcher`")
        if self.launcher is not None and len(self.training_step.argv) < 2:
            raise ValueError("with a launcher, the training step's `argv` must start with a Python and a script")
        asked = (self.stop.save, self.samples.now if self.samples else None)
        if self.launcher is not None and any(request is not None and request.signal is not None for request in asked):
            raise ValueError(
                "with a launcher, use `touch` or `argv` to ask the training: a signal would stop the launcher"
            )
        return self
