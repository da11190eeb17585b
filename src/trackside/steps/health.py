"""The recipe's health check, run at intervals beside the steps; its last result is in a file."""

from __future__ import annotations

import os
import signal
from typing import Any

from trackside.machine import clock
from trackside.machine.clock import Moment, moment_from_record, seconds_between
from trackside.records import read_record, write_record
from trackside.root import Root
from trackside.steps import containers
from trackside.steps.launch import run_in_session, step_environment
from trackside.steps.plan import HealthCheck, Plan
from trackside.steps.tries import Facts

_TAIL_BYTES = 2000


class HealthProbe:
    """Starts the check when it is due, in a separate process; `poll` never waits."""

    def __init__(self, root: Root, plan: Plan) -> None:
        self._root = root
        self._plan = plan
        self._health = plan.health
        self._first = _first_step_after_health(plan)
        self._last: Moment | None = moment_from_record(read_record(root.health))
        self._pid = 0

    def poll(self, facts: Facts, *, running_step: int | None) -> None:
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        if self._health is None or self._pid or running_step is None or running_step < self._first:
            return
        waited = None if self._last is None else seconds_between(self._last, facts.now)
        if self._last is None or waited is None:
            self._last = facts.now  # the step of that name has just passed
        elif waited >= self._health.every_seconds:
            self._last = facts.now
            self._pid = run_in_session("health-check", self._check)

    def _check(self) -> None:
        check_health(self._root, self._plan)


def check_health(root: Root, plan: Plan) -> dict[str, Any]:
    """Run the check once within its timeout, record its result and return it."""
    if plan.health is None:
        return {"ok": None, "failure": None, "exit_code": None, "tail": ""}
    began = clock.now()
    code, failure = _run(root, plan, plan.health)
    answer = {"ok": failure is None, "failure": failure, "exit_code": code, "tail": _tail(root.health_log)}
    write_record(root.health, {**answer, **began.as_record()})
    return answer


def _first_step_after_health(plan: Plan) -> int:
    name = plan.health.step.name if plan.health else ""
    return next((index + 1 for index, step in enumerate(plan.steps) if step.name == name), 0)


def _run(root: Root, plan: Plan, health: HealthCheck) -> tuple[int | None, str | None]:
    import subprocess  # slow to import, needed only here

    step, name = health.step, containers.container_name(root, "health")
    container = plan.container if step.contained else None
    argv, env = list(step.argv), step_environment(step)
    if container is not None:
        containers.remove(container, name)
        argv, env = containers.run_command(container, step, root=root, name=name), dict(os.environ)
    with open(root.health_log, "wb") as log:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=root.inside(step.cwd),
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            log.write(str(error).encode())
            return None, "could_not_start"
    try:
        code = process.wait(step.timeout_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None, "timeout"
    finally:
        if container is not None:
            containers.remove(container, name)
    return code, None if code == 0 else "exit"


def _tail(path: str) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace").strip()
