"""The plan that home wrote: steps, the files they must write, outputs, health check and requests."""

from __future__ import annotations

import json
import signal
from typing import Any, Mapping, NamedTuple, Tuple

from trackside.errors import TracksideError
from trackside.machine.process import Process, process_from_record
from trackside.root import Root, stays_inside

FORMAT = 1
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 1.0, 86_400.0


class PlanInvalid(TracksideError):
    pass


class Again(NamedTuple):
    """Extra arguments for a further try of a step, if the one before left a file of the pattern."""

    pattern: str
    argv: Tuple[str, ...]
    path: str  # the mark in argv that stands for the file
    folder: str  # and the one for its folder


class Attach(NamedTuple):
    """A training that somebody else started: the step watches it and never starts, holds or changes it."""

    process: Process | None  # None: not identified, so its end cannot be seen
    log: str  # a pattern of absolute paths; the newest file of it is the step's log
    output: str | None  # an absolute folder
    since: float | None = None  # files that were last written before this are not the training's
    begun: float | None = None  # from when on the log so far counts as evenly written; None: as written just now


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
    contained: bool = False
    unless: str | None = None
    optional: bool = False
    again: Again | None = None
    attach: Attach | None = None

    def backoff_after(self, number: int) -> float:
        """Return the seconds to wait after the try with this number failed; the last value repeats."""
        if not self.backoff_seconds:
            return 0.0
        return self.backoff_seconds[min(number, len(self.backoff_seconds)) - 1]


class Output(NamedTuple):
    pattern: str
    kind: str


class Mount(NamedTuple):
    source: str
    target: str
    read_only: bool


class Container(NamedTuple):
    """The container for steps that run in one."""

    engine: str
    image: str
    mounts: Tuple[Mount, ...]
    memory_bytes: int | None
    shm_bytes: int | None
    network: str
    gpus: bool


class HealthCheck(NamedTuple):
    """A step that runs beside the others at an interval."""

    step: Step
    every_seconds: float


class TrainingRequest(NamedTuple):
    """How to request something from the training: by a signal, a file or a command."""

    signal: int | None
    touch: str | None
    argv: Tuple[str, ...]
    proof: str
    timeout_seconds: float


class Monitoring(NamedTuple):
    """Whether and how often the machine is sampled beside the training."""

    enabled: bool = True
    interval_seconds: float = 5.0
    per_process: bool = True


class Plan(NamedTuple):
    job: str
    attempt: int
    steps: Tuple[Step, ...]
    outputs: Tuple[Output, ...]
    stop_grace_seconds: float
    container: Container | None = None
    health: HealthCheck | None = None
    save: TrainingRequest | None = None
    sample: TrainingRequest | None = None
    cleanup: Tuple[Step, ...] = ()
    monitoring: Monitoring = Monitoring()


def read_plan(root: Root) -> Plan:
    """Read the plan of this root or of its part. Raises PlanInvalid."""
    plan = _read(root)
    if not root.part:
        return plan
    return plan._replace(steps=plan.cleanup, outputs=(), health=None, save=None, sample=None, cleanup=())


def _read(root: Root) -> Plan:
    try:
        with open(root.plan, "rb") as file:
            found = json.loads(file.read())
    except FileNotFoundError:
        raise PlanInvalid("no plan at %s" % root.plan) from None
    except (OSError, ValueError) as error:
        raise PlanInvalid("the plan at %s cannot be read: %s" % (root.plan, error)) from error
    return parse_plan(found)


def parse_plan(found: Any) -> Plan:
    """Parse the plan in a decoded JSON object; ignores keys that only a newer home knows."""
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
            container=_parse_container(found.get("container")),
            health=_parse_health(found.get("health")),
            save=_parse_request(found.get("save")),
            sample=_parse_request(found.get("sample")),
            cleanup=tuple(_parse_step(step) for step in found.get("cleanup", ())),
            monitoring=_parse_monitoring(found.get("monitoring")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanInvalid("the plan is not valid: %s: %s" % (type(error).__name__, error)) from error


def _parse_step(step: Mapping[str, Any]) -> Step:
    timeout = step.get("timeout_seconds")
    attach = _parse_attach(step.get("attach"))
    argv = _texts(step.get("argv", ()) if attach else step["argv"])
    if not argv and attach is None:
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
        contained=bool(step.get("contained", False)),
        unless=None if step.get("unless") is None else _inside(step["unless"]),
        optional=bool(step.get("optional", False)),
        again=_parse_again(step.get("again")),
        attach=attach,
    )


def _parse_attach(found: Any) -> Attach | None:
    if found is None:
        return None
    process, output = found.get("process"), found.get("output")
    identified = process_from_record(process)
    if process is not None and identified is None:
        raise ValueError("%r does not name a process" % (process,))
    since, begun = found.get("since"), found.get("begun")
    return Attach(
        process=identified,
        log=_absolute(found["log"]),
        output=None if output is None else _absolute(output),
        since=None if since is None else float(since),
        begun=None if begun is None else float(begun),
    )


def _parse_again(found: Any) -> Again | None:
    if found is None:
        return None
    return Again(
        pattern=_inside(found["pattern"]),
        argv=_texts(found["argv"]),
        path=_text(found["path"]),
        folder=_text(found["folder"]),
    )


def _parse_container(found: Any) -> Container | None:
    if found is None:
        return None
    if found["engine"] not in ("docker", "podman"):
        raise ValueError("%r is not a container engine" % found["engine"])
    memory, shm = found.get("memory_bytes"), found.get("shm_bytes")
    return Container(
        engine=_text(found["engine"]),
        image=_not_an_option(found["image"]),
        mounts=tuple(
            Mount(
                source=_mountable(mount["source"]),
                target=_mountable(mount["target"]),
                read_only=bool(mount.get("read_only", False)),
            )
            for mount in found.get("mounts", ())
        ),
        memory_bytes=None if memory is None else int(memory),
        shm_bytes=None if shm is None else int(shm),
        network=_not_an_option(found.get("network", "host")),
        gpus=bool(found.get("gpus", False)),
    )


def _parse_health(found: Any) -> HealthCheck | None:
    if found is None:
        return None
    return HealthCheck(step=_parse_step(found), every_seconds=max(0.1, _not_negative(found["every_seconds"])))


def _parse_request(found: Any) -> TrainingRequest | None:
    if found is None:
        return None
    number, touch, argv = found.get("signal"), found.get("touch"), _texts(found.get("argv", ()))
    if [number is not None, touch is not None, bool(argv)].count(True) != 1:
        raise ValueError("a request needs exactly one of signal, touch and argv")
    return TrainingRequest(
        signal=None if number is None else _signal_number(number),
        touch=None if touch is None else _inside(touch),
        argv=argv,
        proof=_inside(found["proof"]),
        timeout_seconds=_not_negative(found.get("timeout_seconds", 180.0)),
    )


def _parse_monitoring(found: Any) -> Monitoring:
    """Parse the monitoring settings; what is not valid gets its default: it must not keep a job from running."""
    found = found if isinstance(found, dict) else {}
    given = found.get("interval_seconds")
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool) and 0 < given < _LONGEST_INTERVAL
    return Monitoring(
        enabled=found.get("enabled") is not False,
        interval_seconds=max(_SHORTEST_INTERVAL, float(given)) if is_number else Monitoring().interval_seconds,
        per_process=found.get("per_process") is not False,
    )


def _texts(values: Any) -> tuple[str, ...]:
    if isinstance(values, str):
        raise ValueError("%r is a string, not a list of strings" % values)
    return tuple(_text(value) for value in values)


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("%r is not a string" % (value,))
    return value


def _variable(name: Any) -> str:
    if not _text(name) or "=" in name:
        raise ValueError("%r is not a name for an environment variable" % name)
    return str(name)


def _inside(relative: Any) -> str:
    if not stays_inside(_text(relative)):
        raise ValueError("%r leaves the job's folder" % relative)
    return str(relative)


def _absolute(path: Any) -> str:
    if not _text(path).startswith("/"):
        raise ValueError("%r is not an absolute path" % path)
    return str(path)


def _mountable(path: Any) -> str:
    """Check a path for a mount: engines separate source, target and options by colons and commas."""
    if not _text(path).startswith("/") or any(sign in path for sign in ":,\n"):
        raise ValueError("%r cannot be mounted" % path)
    return str(path)


def _not_an_option(word: Any) -> str:
    if not _text(word) or word.startswith("-"):
        raise ValueError("%r is not a name" % word)
    return str(word)


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
