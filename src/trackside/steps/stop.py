"""Stop a step: its stop signal first, KILL after the grace period."""

from __future__ import annotations

import signal
import time

from trackside.errors import TracksideError
from trackside.machine import clock
from trackside.machine.locks import one_at_a_time
from trackside.machine.process import signal_group
from trackside.records import read_record, unless_unwritable, write_record
from trackside.root import Root
from trackside.steps import containers
from trackside.steps.attach import end_attached
from trackside.steps.observe import Observer, running_try, settle
from trackside.steps.plan import Plan
from trackside.steps.tries import Stopping, StopRequest, Try, stop_request_from_record, stopping_from_record

_POLL_SECONDS = 0.02
_KILL_LIMIT_SECONDS = 30.0
_SIGNALLED: set[str] = set()  # folders of tries that this process has sent the stop signal to


def stop(root: Root, plan: Plan, *, grace_seconds: float) -> list[str]:
    """Stop the running step; none will start after it. May be repeated, and needs no supervisor.

    On a disk that takes nothing the step is ended all the same, and no other can start there; returns what could not
    be written. Raises TracksideError if a process survives KILL, which only a broken driver or disk can cause.
    """
    observer = Observer(root, plan)
    problems: list[str] = []
    with unless_unwritable(problems):
        # A try that ended before the stop keeps its own verdict.
        settle(root, plan, observer.observe(now=clock.now()))
    with unless_unwritable(problems):
        _record_request(root, grace_seconds)
    _end_running(root, plan, observer, grace_seconds=grace_seconds)
    with unless_unwritable(problems):
        settle(root, plan, observer.observe(now=clock.now()))
    return problems


def _record_request(root: Root, grace_seconds: float) -> None:
    root.make_own_folders()
    with one_at_a_time(root.steps):
        if stop_request_from_record(read_record(root.stop)) is None:
            write_record(root.stop, StopRequest(at=clock.now(), grace_seconds=grace_seconds).as_record(), durable=True)


def ask_to_end(root: Root, plan: Plan, running: Try, *, why: str) -> None:
    """Send the stop signal once: on a second one trainers abort their saving.

    Where that cannot be recorded, this process still sends it only once.
    """
    folder = root.try_folder(running.step, running.number)
    if running.process is None or folder.path in _SIGNALLED:
        return  # still starting: the next call knows its process
    with one_at_a_time(folder.path):  # `stop` and the supervisor may both do this
        noted = stopping_from_record(read_record(folder.stopping))
        if noted is not None and noted.signalled:
            return
        noted = noted or Stopping(why=why, at=clock.now(), signalled=False)
        problems: list[str] = []
        with unless_unwritable(problems):
            write_record(folder.stopping, noted.as_record(), durable=True)
        if _send(root, plan, running, plan.steps[running.step].stop_signal):
            _SIGNALLED.add(folder.path)
            with unless_unwritable(problems):
                write_record(folder.stopping, noted._replace(signalled=True).as_record())


def force_to_end(root: Root, plan: Plan, running: Try) -> None:
    if running.process is not None and not _send(root, plan, running, signal.SIGKILL):
        # No container to kill: kill the engine's `run` that is about to start one.
        signal_group(running.process, signal.SIGKILL, boot_id=clock.boot_id())


def _send(root: Root, plan: Plan, running: Try, number: int) -> bool:
    """Signal the step, if it still runs; False while its container is not there yet."""
    assert running.process is not None
    if plan.steps[running.step].attach is not None:
        end_attached(running.process, number)
        return True
    if plan.container is None or not plan.steps[running.step].contained:
        signal_group(running.process, number, boot_id=clock.boot_id())
        return True
    name = containers.container_of(root, running.step, running.number)
    return containers.send_signal(plan.container, name, number)


def _end_running(root: Root, plan: Plan, observer: Observer, *, grace_seconds: float) -> None:
    begun = clock.seconds_since_boot()
    while True:
        running = running_try(observer.observe(now=clock.now()))
        if running is None:
            return
        waited = clock.seconds_since_boot() - begun
        if waited > grace_seconds + _KILL_LIMIT_SECONDS:
            raise TracksideError("step %s survives KILL" % plan.steps[running.step].name)
        ask_to_end(root, plan, running, why="stop")
        if waited >= grace_seconds:
            force_to_end(root, plan, running)
        time.sleep(_POLL_SECONDS)
