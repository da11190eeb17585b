"""Ask a running training for a checkpoint or for samples, and see that they were written."""

from __future__ import annotations

import os
import time
from typing import Any, Mapping, NamedTuple

from trackside.machine import clock
from trackside.machine.clock import Moment, moment_from_record, seconds_between
from trackside.machine.locks import one_at_a_time
from trackside.machine.process import signal_process
from trackside.records import read_record, write_record
from trackside.root import Root
from trackside.steps import containers
from trackside.steps.expected import is_whole, matching_files
from trackside.steps.launch import step_environment
from trackside.steps.observe import Observer, running_try
from trackside.steps.plan import Plan, TrainingRequest
from trackside.steps.tries import Try

_POLL_SECONDS = 0.2
_SETTLED_SECONDS = 1.0
_COMMAND_SECONDS = 60.0
_TAIL_BYTES = 2000


class RequestRefused(Exception):
    """The command that makes the request could not be run, or failed."""


class RequestKind(NamedTuple):
    """One kind of request: how it is made, the file that records it, and its two states."""

    how: TrainingRequest | None
    record: str
    doing: str
    done: str


def save(root: Root, plan: Plan, *, request: str, wait_seconds: float) -> dict[str, Any]:
    """Request a checkpoint once per `request`, then wait for it up to `wait_seconds`; a repeated call only waits.

    The answer's state: `saved` with the files, `saving`, `timed_out`, `not_running` (no training runs), `refused` with
    the problem (the command that makes the request failed), `impossible` (the recipe declares no such request).
    """
    return _ask_and_look(root, plan, RequestKind(plan.save, root.save, "saving", "saved"), request, wait_seconds)


def sample(root: Root, plan: Plan, *, request: str, wait_seconds: float) -> dict[str, Any]:
    """Request samples in the same way; the states are `sampled` and `sampling` instead of `saved` and `saving`."""
    return _ask_and_look(
        root, plan, RequestKind(plan.sample, root.sample, "sampling", "sampled"), request, wait_seconds
    )


def _ask_and_look(root: Root, plan: Plan, kind: RequestKind, request: str, wait_seconds: float) -> dict[str, Any]:
    if kind.how is None:
        return _answer("impossible")
    try:
        asked = _ask_once(root, plan, kind.how, kind.record, request)
    except RequestRefused as problem:
        return _answer("refused", problem=str(problem))
    if asked is None:
        return _answer("not_running")
    deadline = clock.seconds_since_boot() + wait_seconds
    while True:
        answer = _look(root, plan, kind, kind.how, asked)
        if answer["state"] != kind.doing or clock.seconds_since_boot() >= deadline:
            return answer
        time.sleep(_POLL_SECONDS)


def touch(path: str) -> None:
    """Create the file or set its time to now, even if a training removes it the moment it appears."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.utime(descriptor)
    finally:
        os.close(descriptor)


def _ask_once(root: Root, plan: Plan, how: TrainingRequest, noted: str, request: str) -> dict[str, Any] | None:
    """Make the request unless it was made; return its record: time and files before it. None if no training runs."""
    root.make_own_folders()
    with one_at_a_time(root.own):
        record = read_record(noted) or {}
        if record.get("id") == request and record.get("asked"):
            return record
        training = _running_training(root, plan)
        if training is None:
            return None
        # Before the request: a file that appears in between is its result.
        record = {"id": request, "asked": False, "before": _marks(root, how), **clock.now().as_record()}
        write_record(noted, record, durable=True)
        if not _ask(root, plan, how, training):
            return None
        record["asked"] = True
        write_record(noted, record, durable=True)
        return record


def _running_training(root: Root, plan: Plan) -> Try | None:
    running = running_try(Observer(root, plan).observe(now=clock.now()))
    if running is None or running.process is None or not plan.steps[running.step].training:
        return None
    return running


def _ask(root: Root, plan: Plan, how: TrainingRequest, training: Try) -> bool:
    if how.touch is not None:
        path = root.inside(how.touch)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        touch(path)
        return True
    if how.argv:
        return _run(root, plan, how, training)
    assert how.signal is not None
    if plan.container is not None and plan.steps[training.step].contained:
        return containers.send_signal(
            plan.container, containers.container_of(root, training.step, training.number), how.signal
        )
    assert training.process is not None
    return signal_process(training.process, how.signal, boot_id=clock.boot_id())


def _run(root: Root, plan: Plan, how: TrainingRequest, training: Try) -> bool:
    """Run the request's command where the training runs. Raises RequestRefused with its output if it failed."""
    import subprocess  # slow to import, needed only here

    step = plan.steps[training.step]
    argv = list(how.argv)
    if plan.container is not None and step.contained:
        name = containers.container_of(root, training.step, training.number)
        argv = containers.exec_command(plan.container, step, argv, root=root, name=name)
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=root.inside(step.cwd),
            env=step_environment(step),
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestRefused(str(error)) from error
    if done.returncode != 0:
        output = done.stdout[-_TAIL_BYTES:].decode("utf-8", "replace").strip()
        raise RequestRefused("exit code %d: %s" % (done.returncode, output))
    return True


def _look(root: Root, plan: Plan, kind: RequestKind, how: TrainingRequest, asked: Mapping[str, Any]) -> dict[str, Any]:
    now = clock.now()
    new = [path for path, mark in _marks(root, how).items() if asked["before"].get(path) != mark]
    written = [path for path in new if _is_written(root.inside(path), now.wall)]
    if written:
        return _answer(kind.done, files=written)
    at = moment_from_record(asked)
    if _is_over(at, now, how):
        return _answer("timed_out")
    if _running_training(root, plan) is None:
        # The training has ended: no more files will come.
        left = [path for path in new if is_whole(root.inside(path))]
        return _answer(kind.done, files=left) if left else _answer("not_running")
    return _answer(kind.doing)


def _is_over(at: Moment | None, now: Moment, how: TrainingRequest) -> bool:
    waited = None if at is None else seconds_between(at, now)
    return waited is None or waited >= how.timeout_seconds


def _is_written(path: str, wall: float) -> bool:
    """Whether a file is complete; where its content does not show that, it must be unchanged for a moment.

    A time in the future comes from another clock and is ignored.
    """
    try:
        age = wall - os.stat(path).st_mtime
    except OSError:
        return False
    return is_whole(path) and (path.endswith(".safetensors") or not 0 <= age < _SETTLED_SECONDS)


def _marks(root: Root, how: TrainingRequest) -> dict[str, list[int]]:
    found = {}
    for path in matching_files(root, how.proof):
        try:
            seen = os.stat(path)
        except OSError:
            continue
        found[os.path.relpath(path, root.path)] = [seen.st_size, seen.st_mtime_ns, seen.st_ino]
    return found


def _answer(state: str, *, files: list[str] | None = None, problem: str = "") -> dict[str, Any]:
    answer = {"state": state, "files": sorted(files or ())}
    return {**answer, "problem": problem} if problem else answer
