"""The plan that a job runs."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from pydantic import Field

from stationmaster.station.plans import JobPlan, RunStep, UsedContainer, UsedParameter
from stationmaster.station.wire.document import Document, Instant
from stationmaster.station.wire.plain import plain, unplain


class RunStepDocument(Document):
    """A command of a job's plan, and what became of it."""

    name: str = Field(examples=["train"])
    """Name of the step."""
    argv: tuple[str, ...]
    """The command; paths are those of a machine."""
    environment: tuple[str, ...]
    """Names of the variables that it gets."""
    secrets: tuple[str, ...]
    """Names of the secrets that it gets."""
    tries: int
    """How often it is tried at most."""
    timeout_seconds: float
    """Of one try."""
    training: bool
    """Whether it is the training itself."""
    contained: bool
    """Whether it runs in the container."""
    optional: bool
    """Whether the plan continues when it fails."""
    state: str | None = Field(default=None, examples=["done"])
    """`running`, `done`, `failed` or `stopped`; null: nothing is known of it yet."""
    tried: int | None = None
    """The number of its last try."""
    exit_code: int | None = None
    """Its exit code; null before it ended."""
    started_at: Instant | None = None
    """When its last try was first seen to run; null: it was over before that."""
    ended_at: Instant | None = None
    """When it ended."""

    @classmethod
    def of(cls, step: RunStep) -> Self:
        return cls(**dataclasses.asdict(step))

    def value(self) -> RunStep:
        return RunStep(**dict(self))


class UsedParameterDocument(Document):
    """A parameter of the recipe with the job's value."""

    name: str
    """Name of the parameter."""
    value: Any
    """The value that the job uses."""
    default: Any
    """Null for one that must be given."""
    help: str
    """What it is for."""
    is_changed: bool
    """Whether the value is not the recipe's default."""

    @classmethod
    def of(cls, parameter: UsedParameter) -> Self:
        return cls(**plain(dataclasses.asdict(parameter)))

    def value_of(self) -> UsedParameter:
        given = dict(self)
        return UsedParameter(**{**given, "value": unplain(given["value"]), "default": unplain(given["default"])})


class UsedContainerDocument(Document):
    """The container in which the steps run."""

    image: str
    """The image."""
    engine: str = Field(examples=["docker"])
    """The program that runs it."""
    memory_bytes: int | None
    """The limit of its memory."""
    shm_bytes: int
    """Its shared memory."""
    network: str
    """Which network it has."""

    @classmethod
    def of(cls, container: UsedContainer) -> Self:
        return cls(**dataclasses.asdict(container))

    def value(self) -> UsedContainer:
        return UsedContainer(**dict(self))


class JobPlanDocument(Document):
    """The plan of a job's current attempt."""

    recipe: str = Field(examples=["tiny-lora@1"])
    """The recipe, as `name@version`."""
    attempt: int
    """The attempt that the steps are of."""
    steps: tuple[RunStepDocument, ...]
    """The steps in their order."""
    parameters: tuple[UsedParameterDocument, ...]
    """Every parameter of the recipe."""
    container: UsedContainerDocument | None
    """The container of the steps; null: none."""
    problem: str | None
    """Why the steps are not known: the recipe is gone or no longer valid."""

    @classmethod
    def of(cls, plan: JobPlan) -> Self:
        return cls(
            recipe=plan.recipe,
            attempt=plan.attempt,
            steps=tuple(RunStepDocument.of(step) for step in plan.steps),
            parameters=tuple(UsedParameterDocument.of(one) for one in plan.parameters),
            container=None if plan.container is None else UsedContainerDocument.of(plan.container),
            problem=plan.problem,
        )

    def value(self) -> JobPlan:
        return JobPlan(
            recipe=self.recipe,
            attempt=self.attempt,
            steps=tuple(step.value() for step in self.steps),
            parameters=tuple(one.value_of() for one in self.parameters),
            container=None if self.container is None else self.container.value(),
            problem=self.problem,
        )
