"""Find a training that somebody else started: by the pid in a file, or by who has its log open for writing.

Only reads: a foreign process is never held, traced or changed here.
"""

from __future__ import annotations

import os
import stat
import time
from typing import Iterator, NamedTuple

from trackside.machine.process import Process, identify, is_alive, parent_of

_PID_FILE_BYTES = 64
_LONGEST_COMMAND = 200
_MOST_ANCESTORS = 64
# Processes that run for everybody on the machine: signalling one of them would end more than a training.
_NOT_A_TRAINING = frozenset(
    ("init", "systemd", "sshd", "login", "dockerd", "containerd", "tmux", "tmux: server", "screen", "SCREEN", "cron")
)
_WRITING = 0o3  # the bits of a descriptor's flags that are not 0 if it is open for writing


class Found(NamedTuple):
    """The process of a training, and how it was found; or the reason why none is known."""

    process: Process | None
    how: str  # "pid_file", "log" or "none"
    problem: str = ""  # set: what was named is not a training that runs
    note: str = ""


def process_in_file(path: str, *, boot_id: str) -> Found:
    """Return the process that a pid file names; a problem if it does not name one that may be a training."""
    try:
        text = _read_little(path)
    except OSError as error:
        return _no("the pid file %s cannot be read: %s" % (path, error.strerror or error))
    words = text.split()
    if not words or not words[0].isdigit() or len(words[0]) > 9:
        return _no("the pid file %s does not contain a process id" % path)
    pid = int(words[0])
    problem = _why_not(pid)
    if problem:
        return _no(problem)
    process = _foreign(pid, boot_id)
    if process is None or not is_alive(process, boot_id=boot_id):
        return _no("no process has the id %d that %s names: the training is over, or the file is old" % (pid, path))
    return Found(process=process, how="pid_file")


def process_writing(log: str, *, boot_id: str) -> Found:
    """Return the process that has the log open for writing; of a training and its workers, the first one."""
    if not os.path.isdir("/proc/self/fd"):
        return Found(process=None, how="none", note="this system does not show who writes a log")
    writers = {_behind_tee(pid) for pid in _writers(log)}
    firsts = sorted(pid for pid in writers if parent_of(pid) not in writers and not _why_not(pid))
    if not firsts:
        return Found(process=None, how="none", note="no process that may be seen has the log open for writing")
    if len(firsts) > 1:
        shown = ", ".join(map(str, firsts[:5]))
        return _no("several processes write %s (%s): name the training's with a pid file" % (log, shown))
    return Found(process=_foreign(firsts[0], boot_id), how="log")


def has_open_for_writing(pid: int, path: str) -> bool:
    return pid in {_behind_tee(writer) for writer in _writers(path)}


def command_of(pid: int) -> str:
    """Return the program and its script. Not the other arguments: people pass tokens in them."""
    words = _command_line(pid)
    if not words:
        return ""
    shown = [os.path.basename(words[0])]
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    if script:
        shown.append(os.path.basename(script))
    text = "".join(letter if letter.isprintable() else "?" for letter in " ".join(shown))
    return text[:_LONGEST_COMMAND]


def started_at(process: Process) -> float | None:
    """Return when a process started, by the wall clock; None where the system does not tell."""
    try:
        with open("/proc/uptime", encoding="ascii") as file:
            uptime = float(file.read().split()[0])
        ran = uptime - int(process.start_time) / os.sysconf("SC_CLK_TCK")
        return time.time() - ran if ran >= 0 else None
    except (OSError, ValueError, IndexError):
        return None


def may_be_signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _no(problem: str) -> Found:
    return Found(process=None, how="none", problem=problem)


def _foreign(pid: int, boot_id: str) -> Process | None:
    """Identify a process. Its group is not noted: it may be a shell's, and whoever signals it has to look then."""
    try:
        found = identify(pid, boot_id=boot_id)
    except ProcessLookupError:
        return None
    return None if found is None else found._replace(group=pid)


def _read_little(path: str) -> str:
    """Read a small regular file. Without waiting for a writer: the path may be a FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        return os.read(descriptor, _PID_FILE_BYTES).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _why_not(pid: int) -> str:
    """Return why this process cannot be somebody's training; empty if it can."""
    if pid <= 1:
        return "process %d is the machine's first process, not a training" % pid
    if pid in _own_line():
        return "process %d belongs to this login itself, not to a training" % pid
    words = _command_line(pid)
    if words is None:
        return ""  # gone, or not to be seen: decided by the caller
    if not words:
        return "process %d belongs to the kernel, or is a zombie" % pid
    name = os.path.basename(words[0])
    if words[0].startswith("-"):
        return "process %d is a login shell (%s), not a training" % (pid, name)
    if name.rstrip(":") in _NOT_A_TRAINING or name.startswith(("sshd:", "tmux:")):
        return "process %d is %s, not a training" % (pid, name)
    return ""


def _own_line() -> set[int]:
    """Return this process and those that started it."""
    found: set[int] = set()
    pid = os.getpid()
    while pid > 1 and pid not in found and len(found) < _MOST_ANCESTORS:
        found.add(pid)
        pid = parent_of(pid) or 0
    return found


def _command_line(pid: int) -> list[str] | None:
    """Return the words of a command; empty for a kernel's process, None if it cannot be read."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            raw = file.read(1 << 16)
    except OSError:
        return None
    return [word.decode("utf-8", "replace") for word in raw.split(b"\0") if word]


def _writers(path: str) -> Iterator[int]:
    try:
        wanted = os.stat(path)
    except OSError:
        return
    for pid, descriptor, folder in _descriptors():
        try:
            seen = os.stat(os.path.join(folder, descriptor))
        except OSError:
            continue
        if (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino) and _is_open_for_writing(pid, descriptor):
            yield pid


def _descriptors() -> Iterator[tuple[int, str, str]]:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        folder = "/proc/%s/fd" % name
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue  # it has ended, or belongs to another user
        for descriptor in descriptors:
            yield int(name), descriptor, folder


def _is_open_for_writing(pid: int, descriptor: str) -> bool:
    try:
        with open("/proc/%d/fdinfo/%s" % (pid, descriptor), encoding="ascii", errors="replace") as file:
            flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
    except (OSError, IndexError):
        return False
    return bool(int(flags, 8) & _WRITING)


def _behind_tee(pid: int) -> int:
    """Return the process whose output a `tee` writes to the log; any other process as it is."""
    words = _command_line(pid)
    if not words or os.path.basename(words[0]) != "tee":
        return pid
    try:
        pipe = os.readlink("/proc/%d/fd/0" % pid)
    except OSError:
        return pid
    if not pipe.startswith("pipe:"):
        return pid
    found = {
        writer
        for writer, descriptor, folder in _descriptors()
        if descriptor in ("1", "2") and writer != pid and _link(os.path.join(folder, descriptor)) == pipe
    }
    firsts = sorted(writer for writer in found if parent_of(writer) not in found)
    return firsts[0] if firsts else pid


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
