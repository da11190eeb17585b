"""Run parts of trackside as processes of their own.

They are forks that start no further Python: everything that they need has been imported by then, so an archive that
home replaces later changes nothing for them.
"""

from __future__ import annotations

import os
import signal
import traceback
from typing import Callable, Mapping, NoReturn

from trackside.errors import TracksideError
from trackside.steps.plan import Step


def detach(name: str, run: Callable[[], None], *, log_path: str, keep: int, in_daemon: Callable[[], None]) -> None:
    """Call `run` in a daemon of this name that inherits only the descriptor `keep`.

    Returns once it runs in its own session, after `in_daemon` was called in it. Raises TracksideError otherwise.
    """
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        _become_daemon(name, run, log_path=log_path, keep=keep, writable=writable, in_daemon=in_daemon)
    os.close(writable)
    os.waitpid(child, 0)
    with open(readable, "rb") as pipe:
        problem = pipe.read()  # ends when the daemon closes the other end
    if problem:
        raise TracksideError("cannot start the supervisor: %s" % problem.decode("utf-8", "replace"))


def run_in_session(
    name: str, run: Callable[[], None], *, env: Mapping[str, str] | None = None, keep: int | None = None
) -> int:
    """Call `run` in a child of this name in its own session, with `env` added to its environment; the child's pid.

    It shares our standard streams and the descriptor `keep`, and has nothing else of ours open: no lock may outlive us
    in it.
    """
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _close_all_but({0, 1, 2} if keep is None else {0, 1, 2, keep})
            os.environ.update(env or {})
            _rename_process(name)
            run()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the caller's code must never go on in this process
            traceback.print_exc()
        finally:
            os._exit(1)
    return pid


def step_environment(step: Step) -> dict[str, str]:
    """Return our environment, which has the step's secrets already, and the plan's, which must not override them."""
    return {**os.environ, **{name: value for name, value in step.env.items() if name not in step.secrets}}


def _become_daemon(
    name: str, run: Callable[[], None], *, log_path: str, keep: int, writable: int, in_daemon: Callable[[], None]
) -> NoReturn:
    try:
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.umask(0o077)
            _point_standard_streams(log_path)
            _close_all_but({0, 1, 2, keep, writable})
            _rename_process(name)
            in_daemon()
        except OSError as error:
            os.write(writable, str(error).encode())
            os._exit(1)
        os.close(writable)
        run()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the caller's code must never go on in this process
        traceback.print_exc()
    finally:
        os._exit(1)


def _rename_process(name: str) -> None:
    """Show this process by its own name in `ps` and `top`: a fork keeps the command line of its verb."""
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(name)
    except OSError:
        pass  # only Linux can


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
