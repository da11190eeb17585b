"""Watch a training that somebody else started: copy its log until its process is gone.

It may be killed at any line and started again; the training does not notice either. How it ended is not known to
anybody but whoever started it, so no exit is written: its files decide what the try counts as.
"""

from __future__ import annotations

import os
import signal
import time

from trackside.machine import clock
from trackside.machine.process import Process, descendants_of, is_alive, is_group_leader
from trackside.records import write_record
from trackside.root import Root, TryFolder
from trackside.steps.foreign_log import LogCopy
from trackside.steps.plan import Attach

_LOOK_SECONDS = 0.5
_NEWER_SECONDS = 5.0
_LAST_WORDS_SECONDS = 0.5  # what a process wrote just before its end may appear a little later
_NICENESS = 10


def watch_attached(root: Root, attach: Attach, folder: TryFolder) -> None:
    """Copy the log until the training is gone or a stop was carried out."""
    os.nice(_NICENESS)
    copy = LogCopy(attach.log, folder)
    looked_at = -_NEWER_SECONDS
    while not _is_over(root, attach):
        moment = clock.seconds_since_boot()
        is_due = moment - looked_at >= _NEWER_SECONDS
        looked_at = moment if is_due else looked_at
        copy.copy(look_for_newer=is_due)
        time.sleep(_LOOK_SECONDS)
    time.sleep(_LAST_WORDS_SECONDS)
    copy.copy(look_for_newer=True)


def link_output(root: Root, attach: Attach) -> None:
    """Make the training's output folder reachable below the job's own, as a link: nothing is copied or moved."""
    write_record(root.adopted_since, {"since": attach.since})
    if attach.output is None or _link_target(root.adopted) == attach.output:
        return
    fresh = "%s.%d.new" % (root.adopted, os.getpid())
    os.symlink(attach.output, fresh)
    os.replace(fresh, root.adopted)


def end_attached(process: Process, number: int) -> None:
    """Signal a training that somebody else started: its group if it leads one, else only itself.

    A process that a shell started in the background shares the shell's group: others must not get the signal. For a
    KILL, what it started is killed with it: nobody else would.
    """
    if not is_alive(process, boot_id=clock.boot_id()):
        return
    children = descendants_of(process.pid) if number == signal.SIGKILL else []
    _send(-process.pid if is_group_leader(process) else process.pid, number)
    for child in children:
        _send(child, number)


def _is_over(root: Root, attach: Attach) -> bool:
    if attach.process is None:
        return os.path.exists(root.stop)  # the end of an unidentified process cannot be seen
    return not is_alive(attach.process, boot_id=clock.boot_id())


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _send(pid: int, number: int) -> None:
    """Send a signal to a process, or to the group of a negative id."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone meanwhile, or another user's
