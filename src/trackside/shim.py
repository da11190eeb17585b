"""One small process per try: it starts the step, waits, and writes down how it ended."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from typing import NoReturn

from trackside import clock, locks
from trackside.errors import TracksideError
from trackside.observe import forget_training
from trackside.plan import Step, read_plan
from trackside.process import Process, identify, process_from_record
from trackside.records import read_record, write_record, write_text
from trackside.root import Root, TryFolder
from trackside.tries import Exit

_RESERVED_BYTES = 4096


def run_shim(root: Root, index: int, number: int) -> None:
    """Run one try of one step to its end. Does nothing if this try was ever begun or a stop was asked."""
    step = read_plan(root).steps[index]
    folder = root.try_folder(index, number)
    # A stop is written under the same lock: either it keeps us from beginning, or it finds our try.
    with locks.one_at_a_time(root.steps):
        lock = None if os.path.exists(root.stop) else _claim(folder)
    if lock is None:
        return
    failed, pid = _start(step, root, folder, lock)
    _, status = os.waitpid(pid, 0)
    if step.training:
        forget_training(root, process_from_record(read_record(folder.process)))
    if failed:
        _write_exit(folder, code=None, signal_number=None, could_not_start=True)
    elif os.WIFSIGNALED(status):
        _write_exit(folder, code=None, signal_number=os.WTERMSIG(status), could_not_start=False)
    else:
        _write_exit(folder, code=os.WEXITSTATUS(status), signal_number=None, could_not_start=False)


def _claim(folder: TryFolder) -> int | None:
    """Make the try's folder appear with `started` in it, written and locked; None if it was there before.

    Built aside and renamed: a folder that is not empty cannot be renamed over, so only one ever succeeds,
    and nobody sees `started` without its lock.
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
        _reserve_exit(staged)
        os.rename(staged.path, folder.path)
    except OSError as error:
        shutil.rmtree(staged.path, ignore_errors=True)
        os.close(lock)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return None
        raise
    return lock


def _start(step: Step, root: Root, folder: TryFolder, lock: int) -> tuple[bool, int]:
    """Fork the step; whether it failed before its program ran, and its pid."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_step(step, root, folder, lock, tell)
    os.close(tell)
    with open(told, "rb") as pipe:
        failed = bool(pipe.read())  # ends when exec closes the other end
    return failed, pid


def _become_step(step: Step, root: Root, folder: TryFolder, lock: int, tell: int) -> NoReturn:
    try:
        log = os.open(folder.log, os.O_WRONLY | os.O_APPEND)
        try:
            _reset_signals()
            os.setsid()
            # Written by the step's own process: a shim killed right after the fork leaves no step without a name.
            _write_process(step, root, folder)
            os.makedirs(root.inside(step.cwd), exist_ok=True)
            os.chdir(root.inside(step.cwd))
            _point_standard_streams(log)
            os.set_inheritable(lock, True)
            os.execvpe(step.argv[0], step.argv, _environment(step))
        except (OSError, TracksideError) as error:
            os.write(log, ("trackside: could not start %s: %s\n" % (step.argv[0], error)).encode())
            os.write(tell, b"failed")
    finally:
        os._exit(127)


def _reset_signals() -> None:
    """A program expects the defaults: Python ignores SIGPIPE, and a shell's `&` ignores SIGINT, for all children."""
    for name in ("HUP", "INT", "QUIT", "TERM", "PIPE", "XFSZ", "CHLD", "USR1", "USR2"):
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _write_process(step: Step, root: Root, folder: TryFolder) -> Process:
    myself = identify(os.getpid(), boot_id=clock.boot_id())
    if myself is None:
        raise TracksideError("its process cannot be seen")
    write_record(folder.process, myself.as_record())
    if step.training:
        write_text(root.training_pid, "%d\n" % myself.pid)
    return myself


def _point_standard_streams(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


def _environment(step: Step) -> dict[str, str]:
    """Ours, which carries the step's secrets already, and the plan's, which must not hide them."""
    return {**os.environ, **{name: value for name, value in step.env.items() if name not in step.secrets}}


def _reserve_exit(folder: TryFolder) -> None:
    """Room for exit.json is taken beforehand: a training that fills the disk still gets its exit code written."""
    with open(folder.exit + ".reserved", "wb") as file:
        file.write(b" " * _RESERVED_BYTES)


def _write_exit(folder: TryFolder, *, code: int | None, signal_number: int | None, could_not_start: bool) -> None:
    ended = Exit(code=code, signal=signal_number, known=True, could_not_start=could_not_start, ended=clock.now())
    with open(folder.exit + ".reserved", "r+b") as file:
        file.write(json.dumps(ended.as_record()).encode())
        file.flush()
        os.fsync(file.fileno())
    os.rename(folder.exit + ".reserved", folder.exit)
