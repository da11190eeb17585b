"""The plan that home wrote: steps, what they must leave behind, and what to watch for."""

from __future__ import annotations

import json
import signal
from typing import Any, Mapping, NamedTuple, Tuple

from trackside.errors import TracksideError
from trackside.root import Root, stays_inside

FORMAT = 1


class PlanInvalid(TracksideError):
    pass


class Step(NamedTuple):
    name: str
    argv: Tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    timeout_seconds: float | None
    tries: int
    backoff_seconds: Tuple[float, ...]
    expect: Tuple[str, ...]
    training: bool
    stop_signal: int
    secrets: Tuple[str, ...]

    def backoff_after(self, number: int) -> float:
        """Seconds to wait after the try with this number failed; the last given value repeats."""
        if not self.backoff_seconds:
            return 0.0
        return self.backoff_seconds[min(number, len(self.backoff_seconds)) - 1]


class Output(NamedTuple):
    pattern: str
    kind: str


class Plan(NamedTuple):
    job: str
    attempt: int
    steps: Tuple[Step, ...]
    outputs: Tuple[Output, ...]
    stop_grace_seconds: float


def read_plan(root: Root) -> Plan:
    """The plan of this root. Raises PlanInvalid with one clear line."""
    try:
        with open(root.plan, "rb") as file:
            found = json.loads(file.read())
    except FileNotFoundError:
        raise PlanInvalid("there is no plan at %s" % root.plan) from None
    except (OSError, ValueError) as error:
        raise PlanInvalid("the plan at %s cannot be read: %s" % (root.plan, error)) from error
    return parse_plan(found)


def parse_plan(found: Any) -> Plan:
    """The plan in a decoded JSON object; keys that only a newer home knows are ignored."""
    try:
        if found["format"] != FORMAT:
            raise PlanInvalid("the plan has format %r; this trackside reads format %d" % (found["format"], FORMAT))
        steps = tuple(_parse_step(step) for step in found["steps"])
        if not steps:
            raise PlanInvalid("the plan has no steps")
        return Plan(
            job=str(found.get("job", "")),
            attempt=int(found.get("attempt", 1)),
            steps=steps,
            outputs=tuple(
                Output(pattern=_inside(output["pattern"]), kind=str(output.get("kind", "other")))
                for output in found.get("outputs", ())
            ),
            stop_grace_seconds=_not_negative(found.get("stop_grace_seconds", 10.0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanInvalid("the plan is not valid: %s: %s" % (type(error).__name__, error)) from error


def _parse_step(step: Mapping[str, Any]) -> Step:
    timeout = step.get("timeout_seconds")
    argv = _texts(step["argv"])
    if not argv:
        raise ValueError("a step has an empty argv")
    return Step(
        name=str(step["name"]),
        argv=argv,
        env={_variable(name): _text(value) for name, value in step.get("env", {}).items()},
        cwd=_inside(step.get("cwd", "work")),
        timeout_seconds=None if timeout is None else _not_negative(timeout),
        tries=max(1, int(step.get("tries", 1))),
        backoff_seconds=tuple(_not_negative(seconds) for seconds in step.get("backoff_seconds", ())),
        expect=tuple(_inside(pattern) for pattern in step.get("expect", ())),
        training=bool(step.get("training", False)),
        stop_signal=_signal_number(step.get("stop_signal", "TERM")),
        secrets=tuple(_variable(name) for name in step.get("secrets", ())),
    )


def _texts(values: Any) -> tuple[str, ...]:
    if isinstance(values, str):
        raise ValueError("%r is one text where a list of texts is needed" % values)
    return tuple(_text(value) for value in values)


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("%r is not a text" % (value,))
    return value


def _variable(name: Any) -> str:
    if not _text(name) or "=" in name:
        raise ValueError("%r is not a name of an environment variable" % name)
    return str(name)


def _inside(relative: Any) -> str:
    if not stays_inside(_text(relative)):
        raise ValueError("%r leaves the job's folder" % relative)
    return str(relative)


def _not_negative(value: Any) -> float:
    seconds = float(value)
    if not seconds >= 0:  # also refuses NaN
        raise ValueError("%r is not a duration" % value)
    return seconds


def _signal_number(name: Any) -> int:
    full_name = _text(name) if str(name).startswith("SIG") else "SIG" + _text(name)
    try:
        return int(signal.Signals[full_name])
    except KeyError:
        raise ValueError("%r is not a signal" % name) from None
