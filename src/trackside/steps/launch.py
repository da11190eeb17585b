"""Start trackside again, from its archive or from an installed package."""

from __future__ import annotations

import os
import sys
from typing import Callable, Mapping, NoReturn

import trackside
from trackside.code_cache import archive_path
from trackside.errors import TracksideError
from trackside.root import Root
from trackside.steps.plan import Step


def own_command(root: Root, *arguments: str) -> list[str]:
    """Return the command line that runs this trackside, independent of working folder and PYTHONPATH."""
    archive = archive_path()
    if archive is not None:
        itself = [archive]
    else:
        parent = os.path.dirname(os.path.dirname(os.path.abspath(trackside.__file__)))
        start = "import sys; sys.path.insert(0, %r); from trackside.__main__ import main; sys.exit(main())" % parent
        itself = ["-c", start]
    part = ["--part", root.part] if root.part else []
    return [sys.executable or "python3", *itself, "--root", root.path, *part, *arguments]


def detach(command: list[str], *, log_path: str, keep: int, in_daemon: Callable[[], None]) -> None:
    """Run a command as a daemon that inherits only the descriptor `keep`.

    Returns once it runs in its own session, after `in_daemon` was called in it. Raises TracksideError otherwise.
    """
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        _become_daemon(command, log_path=log_path, keep=keep, writable=writable, in_daemon=in_daemon)
    os.close(writable)
    os.waitpid(child, 0)
    with open(readable, "rb") as pipe:
        problem = pipe.read()  # ends when exec closes the other end
    if problem:
        raise TracksideError("cannot start the supervisor: %s" % problem.decode("utf-8", "replace"))


def spawn_in_session(command: list[str], *, env: Mapping[str, str], keep: int | None = None) -> int:
    """Run a command as a child in its own session, sharing our standard streams and the descriptor `keep`; its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if keep is not None:
                os.set_inheritable(keep, True)
            os.execve(command[0], command, dict(env))
        finally:
            os._exit(127)
    return pid


def step_environment(step: Step) -> dict[str, str]:
    """Return our environment, which has the step's secrets already, and the plan's, which must not override them."""
    return {**os.environ, **{name: value for name, value in step.env.items() if name not in step.secrets}}


def _become_daemon(
    command: list[str], *, log_path: str, keep: int, writable: int, in_daemon: Callable[[], None]
) -> NoReturn:
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.umask(0o077)
        _point_standard_streams(log_path)
        _close_all_but({0, 1, 2, keep, writable})
        os.set_inheritable(keep, True)
        in_daemon()
        os.execv(command[0], command)
    except OSError as error:
        os.write(writable, str(error).encode())
    finally:
        os._exit(127)


def _point_standard_streams(log_path: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


def _close_all_but(kept: set[int]) -> None:
    """Close the descriptors that are open: an SSH session ends only when no process holds its pipes.

    The limit of descriptors can be a billion, so list them."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            descriptors = [int(name) for name in os.listdir(folder)]
            break
        except OSError:
            descriptors = list(range(256))
    for descriptor in descriptors:
        if descriptor not in kept:
            try:
                os.close(descriptor)
            except OSError:
                pass  # the one that listed the folder
