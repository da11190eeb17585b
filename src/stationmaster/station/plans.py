"""The plan that a job runs: its steps with what became of them, and the values that they were filled in with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stationmaster.model import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """A step of a plan and how far it is. Secrets and the environment are only named."""

    name: str
    argv: tuple[str, ...]
    environment: tuple[str, ...]
    secrets: tuple[str, ...]
    tries: int
    timeout_seconds: float
    training: bool
    contained: bool  # it runs in the plan's container
    optional: bool  # the plan continues when it fails
    state: str | None = None  # running, done, failed, stopped; None: nothing is known of it yet
    tried: int | None = None  # the number of its last try
    exit_code: int | None = None
    started_at: float | None = None  # when the last try was first seen to run; None: it was over before that
    ended_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedParameter:
    """A parameter of the recipe with the job's value. `default` is None for one that must be given."""

    name: str
    value: Any
    default: Any
    help: str
    is_changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedContainer:
    image: str
    engine: str
    memory_bytes: int | None
    shm_bytes: int
    network: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """The plan of a job's current attempt."""

    recipe: str
    attempt: int
    steps: tuple[RunStep, ...] = ()
    parameters: tuple[UsedParameter, ...] = ()
    container: UsedContainer | None = None
    problem: str | None = None  # why the steps are not known: the recipe is gone or no longer valid


def with_progress(steps: Sequence[RunStep], events: Iterable[Event]) -> tuple[RunStep, ...]:
    """The steps as the events of their attempt tell them."""
    known = {step.name: step for step in steps}
    for event in events:
        step = known.get(str(event.payload.get("step")))
        if event.kind == "step" and step is not None:
            known[step.name] = _after(step, event)
    return tuple(known[step.name] for step in steps)


def _after(step: RunStep, event: Event) -> RunStep:
    state, tried = str(event.payload.get("state")), _whole(event.payload.get("try"))
    is_same_try = step.state == "running" and step.tried == tried
    is_running = state == "running"
    return replace(
        step,
        state=state,
        tried=tried,
        exit_code=_whole(event.payload.get("exit_code")),
        started_at=event.at if is_running and not is_same_try else step.started_at if is_same_try else None,
        ended_at=None if is_running else event.at,
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
