"""Steps in containers: the docker or podman commands that run, signal, inspect and remove them."""

from __future__ import annotations

import json
import os
import re
import zlib
from typing import Any, Mapping, NamedTuple

from trackside.machine.visible_gpus import CUDA, HIP
from trackside.root import Root, stream_name
from trackside.steps.plan import Container, Plan, Step

_LABEL = "stationmaster.root"
_LIMIT_SECONDS = 60.0
_SHORT_SECONDS = 10.0
_INITS_OF_PODMAN = ("/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit", "/usr/bin/catatonit")


class ContainerState(NamedTuple):
    """What the engine reports about a container."""

    is_running: bool
    has_run: bool
    pid: int | None
    exit_code: int | None
    out_of_memory: bool


def container_of(root: Root, step: int, number: int) -> str:
    """Return the container name of one try: always the same for it, and different for every other."""
    return container_name(root, stream_name(step, number))


def container_name(root: Root, what: str) -> str:
    """Return the name of a container of this job, different from those of all other jobs on the machine."""
    job = re.sub(r"[^a-zA-Z0-9_.-]", "", os.path.basename(root.path))[:40]
    return "sm-%s-%08x-%s%s" % (job, zlib.crc32(root.path.encode()), root.part and root.part + "-", what)


def run_command(
    container: Container, step: Step, *, root: Root, name: str, environment: Mapping[str, str] = os.environ
) -> list[str]:
    """Return the command that runs a step in a container, prints its output and exits with it.

    It names secrets without their values: the engine takes them from its own environment.
    """
    return [
        container.engine,
        "run",
        "--name=%s" % name,
        "--label=%s=%s" % (_LABEL, root.path),
        "--pull=never",
        "--sig-proxy=false",  # we signal the container itself, once
        "--log-driver=none",  # its output is in the step's log already
        *_init(container),
        *_limits(container, environment),
        *_user(container),
        "--volume=%s:%s" % (root.path, root.path),
        *("--volume=%s:%s%s" % (each.source, each.target, ":ro" * each.read_only) for each in container.mounts),
        "--workdir=%s" % root.inside(step.cwd),
        *("--env=%s=%s" % pair for pair in sorted(step.env.items()) if pair[0] not in step.secrets),
        *("--env=%s" % secret for secret in step.secrets),
        "--entrypoint=%s" % step.argv[0],  # the image's own entrypoint would get our command as arguments
        container.image,
        *step.argv[1:],
    ]


def exec_command(container: Container, step: Step, argv: list[str], *, root: Root, name: str) -> list[str]:
    """Return the command that runs another program in a running step's container."""
    settings = ["--env=%s=%s" % pair for pair in sorted(step.env.items()) if pair[0] not in step.secrets]
    return [container.engine, "exec", "--workdir=%s" % root.inside(step.cwd), *settings, name, *argv]


def image_environment(container: Container) -> dict[str, str] | None:
    """Return the variables that the image sets; None when the engine does not answer."""
    answer = _ask(
        container, "image", "inspect", "--format={{json .Config.Env}}", container.image, limit_seconds=_SHORT_SECONDS
    )
    try:
        found = json.loads(answer) if answer is not None else False
    except ValueError:
        return None
    if found is None:
        return {}  # docker's answer for an image without variables
    if not isinstance(found, list):
        return None
    return dict(pair.split("=", 1) for pair in found if isinstance(pair, str) and "=" in pair)


def look_at(container: Container, name: str) -> ContainerState | None:
    """Return the container's state; None when the engine has no such container or does not answer."""
    answer = _ask(container, "inspect", "--type=container", "--format={{json .State}}", name)
    try:
        state = json.loads(answer) if answer is not None else None
    except ValueError:
        state = None
    return _seen(state) if isinstance(state, dict) else None


def send_signal(container: Container, name: str, number: int) -> bool:
    """Signal the container's first process; False when none is running."""
    return _ask(container, "kill", "--signal=%d" % number, name) is not None


def await_end(container: Container, name: str) -> None:
    """Wait until a container ends whose `run` is gone."""
    _ask(container, "wait", name, limit_seconds=None)


def remove(container: Container, name: str) -> None:
    """Remove the container, running or not."""
    _ask(container, "rm", "--force", "--volumes", name)


def remove_all(root: Root, plan: Plan) -> None:
    """Remove every container of this job from the machine."""
    if plan.container is None:
        return
    listed = _ask(plan.container, "ps", "--all", "--quiet", "--filter=label=%s=%s" % (_LABEL, root.path))
    for name in (listed or b"").decode("ascii", "replace").split():
        remove(plan.container, name)


def _init(container: Container) -> list[str]:
    """Run an init that forwards signals: a trainer that is process 1 itself would ignore most of them."""
    has_one = container.engine == "docker" or any(os.path.exists(path) for path in _INITS_OF_PODMAN)
    return ["--init"] if has_one else []


def _limits(container: Container, environment: Mapping[str, str]) -> list[str]:
    limits = ["--network=%s" % container.network]
    if container.shm_bytes:
        limits.append("--shm-size=%d" % container.shm_bytes)
    if container.memory_bytes:
        # The same limit for both: a step that swaps makes no progress.
        limits += ["--memory=%d" % container.memory_bytes, "--memory-swap=%d" % container.memory_bytes]
    if container.gpus:
        limits.append("--gpus=all" if container.engine == "docker" else "--device=nvidia.com/gpu=all")
        # The container has every GPU, and its programs use those of this job.
        limits += ["--env=%s=%s" % (name, environment[name]) for name in (CUDA, HIP) if name in environment]
    return limits


def _user(container: Container) -> list[str]:
    """Make the files that the container writes belong to the user that runs trackside."""
    if os.geteuid() == 0:
        return []
    if container.engine == "podman":
        return ["--userns=keep-id"]
    return ["--user=%d:%d" % (os.geteuid(), os.getegid())]


def _seen(state: dict[str, Any]) -> ContainerState:
    status = str(state.get("Status", ""))
    return ContainerState(
        is_running=bool(state.get("Running")),
        has_run=status in ("exited", "dead", "stopped", "running"),
        pid=state.get("Pid") or None,
        exit_code=state.get("ExitCode"),
        out_of_memory=bool(state.get("OOMKilled")),
    )


def _ask(container: Container, *arguments: str, limit_seconds: float | None = _LIMIT_SECONDS) -> bytes | None:
    """Return the engine's output; None if it fails, is missing or times out."""
    import subprocess  # slow to import, needed only for containers

    try:
        done = subprocess.run(
            [container.engine, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit_seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
