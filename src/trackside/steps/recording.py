"""The recorder's process: it looks at a running try every second until that has ended."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from trackside.machine import clock
from trackside.recorder.recorder import RecordedTry, Recorder, TryEnd
from trackside.recorder.schedule import Schedule
from trackside.records import read_record
from trackside.root import Root, TryFolder, stream_name
from trackside.steps.monitored_step import database_of, job_of
from trackside.steps.observe import Observer
from trackside.steps.plan import Plan, read_plan
from trackside.steps.tries import exit_from_record

LOOK_NOW = signal.SIGURG  # a process that does not handle it yet ignores it

_LOOK_SECONDS = 1.0
_START_SECONDS = 10.0
_POLL_SECONDS = 0.05
_PROCESS_SECONDS = 5.0
_NICENESS = 10


def record(root: Root, index: int, number: int) -> None:
    """Record one try to its end. The caller holds the recorder's lock in this process."""
    os.nice(_NICENESS)
    woken = _wake_on_signal()
    plan = read_plan(root)
    folder = root.try_folder(index, number)
    observer = Observer(root, plan)
    if not _await_start(folder):
        return
    recorder = Recorder(_recorded(root, plan, index, number), moment=clock.seconds_since_boot(), note=_log)
    process_checks = Schedule(_PROCESS_SECONDS, start=0.0)
    pid = None
    while not os.path.exists(folder.exit):
        moment = clock.seconds_since_boot()
        # Where the shim was killed there is no exit file; reading a process costs more than all else here.
        if process_checks.take_turn(moment) and observer.is_over(index, number, now=clock.now()):
            break
        pid = pid or _pid(plan, index, folder)
        recorder.look(wall=time.time(), moment=moment, pid=pid)
        if _sleep(woken, min(_LOOK_SECONDS, recorder.seconds_left(moment))):
            process_checks = Schedule(_PROCESS_SECONDS, start=0.0)
    recorder.finish(_end(folder), wall=time.time(), moment=clock.seconds_since_boot())


def _await_start(folder: TryFolder) -> bool:
    """Wait for the try, which starts at the same time; False if it does not: a stop may have come first."""
    deadline = clock.seconds_since_boot() + _START_SECONDS
    while not os.path.exists(folder.started):
        if clock.seconds_since_boot() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _recorded(root: Root, plan: Plan, index: int, number: int) -> RecordedTry:
    step = plan.steps[index]
    folder = root.try_folder(index, number)
    started = (read_record(folder.started) or {}).get("wall")
    return RecordedTry(
        job=job_of(plan, step),
        database=database_of(root, step),
        folder=root.path,
        log=folder.log,
        stream=stream_name(index, number),
        started=started if isinstance(started, float) else time.time(),
        interval_seconds=plan.monitoring.interval_seconds,
        per_process=plan.monitoring.per_process,
        newest_sample=root.newest_sample,
    )


def _pid(plan: Plan, index: int, folder: TryFolder) -> int | None:
    """Return the training's first process; that of a container once the engine has reported it."""
    is_contained = plan.steps[index].contained and plan.container is not None
    found = (read_record(folder.container if is_contained else folder.process) or {}).get("pid")
    return found if isinstance(found, int) else None


def _end(folder: TryFolder) -> TryEnd:
    ended = exit_from_record(read_record(folder.exit))
    if ended is None:
        return TryEnd(wall=time.time(), exit_code=None, signal=None)
    return TryEnd(wall=ended.ended.wall, exit_code=ended.code, signal=ended.signal, out_of_memory=ended.out_of_memory)


def _wake_on_signal() -> int:
    """Return a descriptor that becomes readable when the supervisor reports that the try has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(LOOK_NOW, lambda *_: None)
    return readable


def _sleep(woken: int, seconds: float) -> bool:
    """Sleep; True if the supervisor ended it."""
    readable, _, _ = select.select([woken], [], [], seconds)
    return bool(readable and os.read(woken, 4096))


def _log(text: str) -> None:
    try:
        print("%.3f recorder: %s" % (time.time(), text), file=sys.stderr, flush=True)
    except OSError:
        pass  # a full disk stops the log, not the recorder
