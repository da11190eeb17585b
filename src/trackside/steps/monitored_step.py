"""The environment of a monitored training: where its metrics go, and where its Python finds `trackside`."""

from __future__ import annotations

import os
from typing import Mapping

from trackside.code_cache import importable_folder
from trackside.metrics.locations import journal_folder
from trackside.metrics.schema import DEFAULT_NAME
from trackside.root import Root, TryFolder
from trackside.steps.containers import image_environment
from trackside.steps.plan import Mount, Plan, Step

_DATABASE = "TRACKSIDE_DATABASE"
_JOB = "TRACKSIDE_JOB"
_LOG = "TRACKSIDE_LOG"
_RECORDER = "TRACKSIDE_RECORDER"
_DISABLED = "TRACKSIDE_DISABLED"
_PYTHONPATH = "PYTHONPATH"


def is_monitored(plan: Plan, step: Step) -> bool:
    """Return whether a recorder runs beside this step."""
    return step.training and plan.monitoring.enabled


def monitored_step(plan: Plan) -> Step | None:
    """Return the step whose metrics are recorded; None where there is none."""
    return next((step for step in plan.steps if is_monitored(plan, step)), None)


def database_of(root: Root, step: Step) -> str:
    """Return the path of the database that the step's metrics are written to; the plan may name another one."""
    given = step.env.get(_DATABASE)
    if given:
        return os.path.join(root.inside(step.cwd), given)
    return os.path.join(root.path, "logs", DEFAULT_NAME)


def job_of(plan: Plan, step: Step) -> str:
    """Return the job id of the step's rows."""
    return step.env.get(_JOB) or plan.job


def with_monitoring(root: Root, plan: Plan, step: Step, folder: TryFolder) -> Step:
    """Return a training step with the variables of its collector; every other step as it is.

    A value that the plan gives wins. Whatever cannot be prepared is left out: the step runs without it. A script that
    imports trackside must run without monitoring too: then it finds the package, and nothing is recorded.
    """
    if not step.training:
        return step
    if plan.monitoring.enabled:
        added = {
            _DATABASE: database_of(root, step),
            _JOB: job_of(plan, step),
            _LOG: folder.log,
            _RECORDER: "1",
        }
    else:
        added = {_DISABLED: "1"}
    return step._replace(env={**added, **step.env, **_with_own_code(root, plan, step)})


def journal_mounts(root: Root, plan: Plan, step: Step) -> tuple[Mount, ...]:
    """Return the mount for the journal of a contained training; none where it is in the job's folder.

    Shared memory is the container's own and ends with it: the last steps of a killed training would be lost.
    """
    folder = journal_folder(database_of(root, step)) if is_monitored(plan, step) else root.path
    if (folder + os.sep).startswith(root.path + os.sep):
        return ()
    return (Mount(source=folder, target=folder, read_only=False),)


def _with_own_code(root: Root, plan: Plan, step: Step) -> dict[str, str]:
    """Return PYTHONPATH with our package in front of what the step would have; empty if either is unknown."""
    there = _environment_there(plan, step)
    if there is None or _PYTHONPATH in step.secrets:
        return {}
    try:
        ours = importable_folder(root.own)
    except OSError:
        return {}  # a full or read-only disk: the training runs, but cannot import trackside
    return {_PYTHONPATH: os.pathsep.join(path for path in (ours, there.get(_PYTHONPATH)) if path)}


def _environment_there(plan: Plan, step: Step) -> Mapping[str, str] | None:
    if _PYTHONPATH in step.env:
        return step.env
    if step.contained and plan.container is not None:
        return image_environment(plan.container)
    return os.environ
