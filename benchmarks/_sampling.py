"""What taking samples costs: CPU time and memory of a sampler beside a training with data-loader workers."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trackside.sampler.gpus import Gpus
from trackside.sampler.sampler import Sampler

INTERVAL_SECONDS = 5.0
_SOURCE = str(Path(__file__).resolve().parents[1] / "src")
_TRAINING = """
import multiprocessing, signal, sys

def load(ready):
    mine = bytearray(b"x") * (30 << 20)
    ready.release()
    signal.pause()

if __name__ == "__main__":
    weights = bytearray(b"x") * (500 << 20)
    context = multiprocessing.get_context("fork")
    ready = context.Semaphore(0)
    for _ in range(int(sys.argv[1])):
        context.Process(target=load, args=(ready,), daemon=True).start()
        ready.acquire()
    print("ready", flush=True)
    sys.stdin.read()
"""
_RESIDENT = """
import os, sys
sys.path.insert(0, %r)
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmRSS:")))
"""
_RESIDENT_AFTER_SAMPLES = """
import sys
sys.path.insert(0, %r)
from trackside.sampler.sampler import Sampler
sampler = Sampler(int(sys.argv[1]), folder=".", note=lambda text: None)
for number in range(20):
    sampler.take(float(number))
"""


@contextmanager
def training(workers: int = 4) -> Iterator[int]:
    """Run a process with 500 MiB and workers that share them; yields its pid."""
    command = [sys.executable, "-c", _TRAINING, str(workers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        yield running.pid


def percent_of_a_core(pid: int | None, *, takes: int, gpus: Callable[[Callable[[], float]], Gpus]) -> float:
    """Return the CPU time of sampling every 5 s, programs that it starts included, in percent of one core.

    The samples follow each other at once; their clock advances by the interval, so that what is read rarely is counted
    as rarely as it is read.
    """
    clock = [1000.0]
    sampler = Sampler(pid, folder=".", note=_print_note, now=lambda: clock[0], gpus=gpus(lambda: clock[0]))
    sampler.take(clock[0])  # loads libraries
    before = _cpu_seconds()
    for _ in range(takes):
        clock[0] += INTERVAL_SECONDS
        sampler.take(clock[0])
    used = _cpu_seconds() - before
    sampler.close()
    return 100.0 * used / takes / INTERVAL_SECONDS


def added_mebibytes(pid: int) -> float:
    """Return how much larger a Python is that has taken samples than one that does nothing."""
    bare, sampling = _RESIDENT % _SOURCE, (_RESIDENT_AFTER_SAMPLES + _RESIDENT) % (_SOURCE, _SOURCE)
    sizes = [
        int(subprocess.run([sys.executable, "-c", script, str(pid)], check=True, stdout=subprocess.PIPE).stdout)
        for script in (bare, sampling)
    ]
    return (sizes[1] - sizes[0]) / 1024


def _cpu_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def _print_note(text: str) -> None:
    print("note: " + text, file=sys.stderr)
