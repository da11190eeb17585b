"""Runs a tracker in its own environment and prints one JSON object: `python -m trackers.probe TRACKER VERB FOLDER …`.

    loop FOLDER STEPS PAUSE SECONDS   time every call; stop after SECONDS
    kill FOLDER STEPS PAUSE           log the steps, then end this process with SIGKILL
    read FOLDER                       count the stored steps

It imports as little as possible, so that what a tracker imports is counted as the tracker's.
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trackers.adapters import Adapter, Log

_WARM_UP_STEPS = 100


def main(tracker: str, verb: str, folder: str, *values: str) -> int:
    adapter: Adapter = import_module("trackers.adapters." + tracker)
    answer: dict[str, Any]
    if verb == "loop":
        answer = _loop(adapter, folder, int(values[0]), pause=float(values[1]), seconds=float(values[2]))
    elif verb == "kill":
        return _log_and_die(adapter, folder, int(values[0]), pause=float(values[1]))
    else:
        answer = {"steps": adapter.stored_steps(folder)}
    import json  # last: a tracker that uses it pays for it

    print("\n" + json.dumps(answer), flush=True)
    return 0


def _loop(adapter: Adapter, folder: str, steps: int, *, pause: float, seconds: float) -> dict[str, Any]:
    began = time.perf_counter()
    log, finish = adapter.start(folder)
    start_seconds = time.perf_counter() - began
    warm_up = min(steps, _WARM_UP_STEPS)
    for step in range(1, warm_up + 1):
        log(step, 1.0 / step, 1e-4, 0.5)
    durations = array("Q", bytes(8 * steps))
    cpu_before = time.process_time()
    done = _timed_steps(log, durations, pause=pause, until=time.perf_counter_ns() + int(seconds * 1e9))
    resident = _resident_kib_of_tree()
    finish()
    cpu_seconds = time.process_time() - cpu_before
    ordered = sorted(durations[:done])
    return {
        "start_seconds": start_seconds,
        "timed": done,
        "logged": warm_up + done,
        "median_us": ordered[done // 2] / 1e3 if done else None,
        "p99_us": ordered[done * 99 // 100] / 1e3 if done else None,
        "max_us": ordered[-1] / 1e3 if done else None,
        "resident_kib": resident,
        "cpu_seconds": cpu_seconds + _cpu_seconds_of_ended_children(),
    }


def _timed_steps(log: Log, durations: array[int], *, pause: float, until: int) -> int:
    clock, sleep = time.perf_counter_ns, time.sleep
    for done in range(len(durations)):
        step = _WARM_UP_STEPS + 1 + done
        loss, lr, grad_norm = 1.0 / step, 1e-4, 0.5 + step * 1e-6
        before = clock()
        log(step, loss, lr, grad_norm)
        after = clock()
        durations[done] = after - before
        if after > until:
            return done + 1
        if pause:
            sleep(pause)
    return len(durations)


def _log_and_die(adapter: Adapter, folder: str, steps: int, *, pause: float) -> int:
    log, _ = adapter.start(folder)
    for step in range(1, steps + 1):
        log(step, 1.0 / step, 1e-4, 0.5 + step * 1e-6)
        if pause and step < steps:
            time.sleep(pause)
    os.kill(os.getpid(), 9)
    return 1


def _cpu_seconds_of_ended_children() -> float:
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _resident_kib_of_tree() -> int:
    """Return the resident memory of this process and of those that it started."""
    waiting, total = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                total += int(file.read().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                    waiting.extend(map(int, file.read().split()))
        except OSError:  # it ended meanwhile
            continue
    return total


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
