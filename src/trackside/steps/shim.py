"""One small process per try: it starts the step, waits, and writes down how it ended."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import time
from typing import Mapping, NamedTuple, NoReturn, Tuple

from trackside.errors import TracksideError
from trackside.machine import clock, locks
from trackside.machine.process import Process, identify, process_from_record
from trackside.records import read_record, write_record, write_text
from trackside.root import Root, TryFolder
from trackside.steps import containers
from trackside.steps.attach import link_output, watch_attached
from trackside.steps.expected import matching_files, newest_whole
from trackside.steps.foreign_log import copy_so_far
from trackside.steps.launch import step_environment
from trackside.steps.monitored_step import journal_mounts, with_monitoring
from trackside.steps.observe import forget_training
from trackside.steps.plan import Attach, Container, Plan, Step, read_plan
from trackside.steps.tries import Exit

_RESERVED_BYTES = 4096
_LOOK_SECONDS = 0.2
_KILLED = 128 + signal.SIGKILL


class Command(NamedTuple):
    """The command that runs a step: its own program, or the engine that runs it in a container."""

    argv: Tuple[str, ...]
    env: Mapping[str, str]


def run_shim(root: Root, index: int, number: int) -> None:
    """Run one try of one step to its end. Does nothing if this try was ever started or a stop was requested."""
    plan = read_plan(root)
    step = plan.steps[index]
    folder = root.try_folder(index, number)
    if step.attach is not None:
        _watch(root, step.attach, folder)
        return
    # A stop is written under the same lock: either we see it and do not start, or it finds our try.
    with locks.one_at_a_time(root.steps):
        lock = None if os.path.exists(root.stop) else _claim(folder)
    if lock is None:
        return
    step = _with_resume_arguments(root, step, folder) if number > 1 else step
    if step.unless is not None and next(iter(matching_files(root, step.unless)), None) is not None:
        _skip(folder, step.unless)
        return
    step = with_monitoring(root, plan, step, folder)
    if step.contained and plan.container is not None:
        _run_contained(root, plan, step, folder, lock, containers.container_of(root, index, number))
    else:
        _run(root, step, folder, lock)


def _watch(root: Root, attach: Attach, folder: TryFolder) -> None:
    """Watch somebody else's training. Unlike a try that runs, watching is continued by the next shim if one died."""
    with locks.one_at_a_time(root.steps):
        link_output(root, attach)  # before the try exists: its end is judged by these files, whoever dies
        lock = None if os.path.exists(root.stop) else _claim(folder, attach)
        if lock is None:
            lock = _take_over(folder)
    if lock is not None:
        watch_attached(root, attach, folder)


def _take_over(folder: TryFolder) -> int | None:
    """Lock a try whose watcher has died; None while it lives."""
    try:
        lock = os.open(folder.started, os.O_RDWR)
    except OSError:
        return None
    if locks.try_lock(lock):
        return lock
    os.close(lock)
    return None


def _with_resume_arguments(root: Root, step: Step, folder: TryFolder) -> Step:
    """Return the step for a further try: it resumes from what the one before left, if anything."""
    path = None if step.again is None else newest_whole(root, step.again.pattern)
    if step.again is None or path is None:
        return step
    _note(folder, "goes on from %s" % os.path.relpath(path, root.path))
    marks = {step.again.path: path, step.again.folder: os.path.dirname(path)}
    return step._replace(argv=(*step.argv, *(_replaced(argument, marks) for argument in step.again.argv)))


def _note(folder: TryFolder, text: str) -> None:
    """Write one line to the step's log; the step runs even if a full disk prevents that."""
    line = "".join(letter if letter.isprintable() else "?" for letter in text)
    try:
        with open(folder.log, "a", encoding="utf-8", errors="replace") as log:
            log.write("trackside: %s\n" % line)
    except OSError:
        pass


def _replaced(argument: str, marks: Mapping[str, str]) -> str:
    # In one pass: inserted text is not searched for marks.
    found = re.split("(%s)" % "|".join(map(re.escape, marks)), argument)
    return "".join(marks.get(part, part) for part in found)


def _skip(folder: TryFolder, pattern: str) -> None:
    _note(folder, "%s is there already, nothing to do" % pattern)
    _write_exit(folder, code=0, signal_number=None)


def _run(root: Root, step: Step, folder: TryFolder, lock: int) -> None:
    failed, pid = _start(step, Command(step.argv, step_environment(step)), root, folder, lock)
    _, status = os.waitpid(pid, 0)
    _forget(root, step, folder)
    if failed:
        _write_exit(folder, code=None, signal_number=None, could_not_start=True)
    elif os.WIFSIGNALED(status):
        _write_exit(folder, code=None, signal_number=os.WTERMSIG(status))
    else:
        _write_exit(folder, code=os.WEXITSTATUS(status), signal_number=None)


def _run_contained(root: Root, plan: Plan, step: Step, folder: TryFolder, lock: int, name: str) -> None:
    """Run the step by the engine's `run`; the engine reports how it ended, even if `run` itself was killed."""
    assert plan.container is not None
    journals = journal_mounts(root, plan, step)
    for mount in journals:
        os.makedirs(mount.source, mode=0o700, exist_ok=True)
    container = plan.container._replace(mounts=(*plan.container.mounts, *journals))
    for mount in container.mounts:
        if not os.path.exists(mount.source):
            os.makedirs(mount.source, exist_ok=True)
    argv = containers.run_command(container, step, root=root, name=name)
    failed, pid = _start(step, Command(tuple(argv), os.environ), root, folder, lock)
    status = _await_run(container, name, pid, folder)
    seen = containers.look_at(container, name)
    if seen is not None and seen.is_running:
        seen = _await_orphan(container, name, root)
    _forget(root, step, folder)
    if seen is not None and seen.has_run:
        _write_exit(
            folder,
            code=seen.exit_code,
            signal_number=None,
            out_of_memory=_is_out_of_memory(root, folder, container, seen),
        )
    else:
        _write_exit(folder, code=None, signal_number=None, could_not_start=failed or bool(status))
    containers.remove(container, name)


def _await_run(container: Container, name: str, pid: int, folder: TryFolder) -> int:
    """Wait for `run` and return its status; record the container's process as soon as it is known."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        seen = containers.look_at(container, name)
        if seen is not None and seen.is_running and seen.pid:
            write_record(folder.container, {"name": name, "pid": seen.pid})
            return os.waitpid(pid, 0)[1]
        time.sleep(_LOOK_SECONDS)


def _await_orphan(container: Container, name: str, root: Root) -> containers.ContainerState | None:
    """Wait for a container that outlived its `run`; kill it if a stop was requested."""
    if os.path.exists(root.stop):
        containers.send_signal(container, name, signal.SIGKILL)
    containers.await_end(container, name)
    return containers.look_at(container, name)


def _is_out_of_memory(root: Root, folder: TryFolder, container: Container, seen: containers.ContainerState) -> bool:
    """Whether the step ran out of memory: the engine reports it, but not on older kernels.

    Under a memory limit a KILL counts as such too, unless it may be our own.
    """
    is_ours = os.path.exists(root.stop) or os.path.exists(folder.stopping)
    return seen.out_of_memory or (container.memory_bytes is not None and seen.exit_code == _KILLED and not is_ours)


def _forget(root: Root, step: Step, folder: TryFolder) -> None:
    if step.training:
        forget_training(root, process_from_record(read_record(folder.process)))


def _claim(folder: TryFolder, attach: Attach | None = None) -> int | None:
    """Make the try's folder appear with `started` in it, written and locked; None if it was there before.

    Built under another name and renamed: a rename cannot replace a folder that is not empty, so only one process ever
    succeeds, and `started` is never visible without its lock.
    """
    staged = TryFolder("%s.%d.staged" % (folder.path, os.getpid()))
    os.mkdir(staged.path, 0o700)
    lock = os.open(staged.started, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        locks.try_lock(lock)
        moment = clock.now()
        myself = identify(os.getpid(), boot_id=moment.boot_id)
        record = {**moment.as_record(), "shim": myself.as_record() if myself else None}
        os.write(lock, json.dumps(record).encode())
        os.close(os.open(staged.log, os.O_WRONLY | os.O_CREAT, 0o600))
        if attach is not None:
            _prepare_watch(staged, attach)
        _reserve_exit(staged)
        os.rename(staged.path, folder.path)
    except OSError as error:
        shutil.rmtree(staged.path, ignore_errors=True)
        os.close(lock)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return None
        raise
    return lock


def _prepare_watch(staged: TryFolder, attach: Attach) -> None:
    if attach.process is not None:
        write_record(staged.process, attach.process.as_record())
    copy_so_far(attach.log, staged, begun=attach.begun)


def _start(step: Step, command: Command, root: Root, folder: TryFolder, lock: int) -> tuple[bool, int]:
    """Fork the step; return whether it failed before its program ran, and its pid."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_step(step, command, root, folder, lock, writable)
    os.close(writable)
    with open(readable, "rb") as pipe:
        failed = bool(pipe.read())  # ends when exec closes the other end
    return failed, pid


def _become_step(step: Step, command: Command, root: Root, folder: TryFolder, lock: int, writable: int) -> NoReturn:
    try:
        log = os.open(folder.log, os.O_WRONLY | os.O_APPEND)
        try:
            _reset_signals()
            os.setsid()
            # Written by the step's own process: a shim killed right after the fork leaves no unidentified step.
            _write_process(step, root, folder)
            os.makedirs(root.inside(step.cwd), exist_ok=True)
            os.chdir(root.inside(step.cwd))
            _point_standard_streams(log)
            os.set_inheritable(lock, True)
            os.execvpe(command.argv[0], command.argv, command.env)
        except (OSError, TracksideError) as error:
            os.write(log, ("trackside: could not start %s: %s\n" % (command.argv[0], error)).encode())
            os.write(writable, b"failed")
    finally:
        os._exit(127)


def _reset_signals() -> None:
    """Restore the defaults that programs expect: Python ignores SIGPIPE, a shell's `&` ignores SIGINT."""
    for name in ("HUP", "INT", "QUIT", "TERM", "PIPE", "XFSZ", "CHLD", "USR1", "USR2"):
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _write_process(step: Step, root: Root, folder: TryFolder) -> Process:
    myself = identify(os.getpid(), boot_id=clock.boot_id())
    if myself is None:
        raise TracksideError("cannot identify its process")
    write_record(folder.process, myself.as_record())
    if step.training:
        write_text(root.training_pid, "%d\n" % myself.pid)
    return myself


def _point_standard_streams(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


def _reserve_exit(folder: TryFolder) -> None:
    """Reserve room for exit.json: its exit code can be written even after a training filled the disk."""
    with open(folder.exit + ".reserved", "wb") as file:
        file.write(b" " * _RESERVED_BYTES)


def _write_exit(
    folder: TryFolder,
    *,
    code: int | None,
    signal_number: int | None,
    could_not_start: bool = False,
    out_of_memory: bool = False,
) -> None:
    ended = Exit(
        code=code,
        signal=signal_number,
        known=True,
        could_not_start=could_not_start,
        ended=clock.now(),
        out_of_memory=out_of_memory,
    )
    with open(folder.exit + ".reserved", "r+b") as file:
        file.write(json.dumps(ended.as_record()).encode())
        file.flush()
        os.fsync(file.fileno())
    os.rename(folder.exit + ".reserved", folder.exit)
