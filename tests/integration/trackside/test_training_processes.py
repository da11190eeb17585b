"""Real trainings with real workers: who is who, and how much memory each one holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import until
from trackside.sampler.sample import Sample
from trackside.sampler.sampler import Sampler

WORKERS = 2
MAIN_GB, WORKER_GB = 0.2, 0.1

TRAINING = f"""
import multiprocessing, signal, subprocess, sys

def hold(gb):
    return bytearray(b"x") * int(gb * (1 << 30))

def load(ready):
    mine = hold({WORKER_GB})
    ready.release()
    signal.pause()

if __name__ == "__main__":
    weights = hold({MAIN_GB})
    context = multiprocessing.get_context(sys.argv[1])
    ready = context.Semaphore(0)
    workers = [context.Process(target=load, args=(ready,), daemon=True) for _ in range({WORKERS})]
    for worker in workers:
        worker.start()
    tool = subprocess.Popen(["sleep", "1000"])
    for _ in workers:
        ready.acquire()
    print("ready", flush=True)
    sys.stdin.read()
    tool.kill()
    tool.wait()
"""


@contextmanager
def training(folder: Path, method: str) -> Iterator[subprocess.Popen[bytes]]:
    """A shell that runs a Python that has workers: all of them have started and filled their memory."""
    (folder / "train.py").write_text(TRAINING)
    command = f'"{sys.executable}" train.py {method}; true'
    with subprocess.Popen(["sh", "-c", command], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        yield running


def sampler_of(pid: int, folder: Path, *, per_process: bool = True, notes: list[str] | None = None) -> Sampler:
    note = notes.append if notes is not None else lambda _: None
    return Sampler(pid, folder=str(folder), per_process=per_process, note=note)


def roles(sample: Sample) -> list[str]:
    return sorted(process.role for process in sample.processes)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_and_their_memory_are_told_apart(tmp_path: Path, method: str) -> None:
    notes: list[str] = []
    with training(tmp_path, method) as running:
        sampler = sampler_of(running.pid, tmp_path, notes=notes)
        sample = sampler.take(1000.0)
        trackers = {"fork": 0, "spawn": 1, "forkserver": 2}[method]
        assert roles(sample) == ["main", *["other"] * (2 + trackers), *["worker"] * WORKERS]
        assert sample.worker_count == WORKERS
        assert sample.main_process_memory_gb == pytest.approx(MAIN_GB, rel=0.15)
        assert sample.worker_memory_gb == pytest.approx(WORKERS * WORKER_GB, rel=0.15)
        assert [process.cpu_percent for process in sample.processes if process.role == "main"] == [None]
        later = sampler.take(1005.0)
        assert all(process.cpu_percent is not None for process in later.processes)
    assert notes == []


def test_a_worker_that_vanishes_is_left_out_and_an_ended_training_has_no_processes(tmp_path: Path) -> None:
    with training(tmp_path, "fork") as running:
        sampler = sampler_of(running.pid, tmp_path)
        first = next(process.pid for process in sampler.take(1000.0).processes if process.role == "worker")
        os.kill(first, signal.SIGKILL)
        assert until(lambda: sampler.take(1005.0).worker_count == WORKERS - 1)
    ended = sampler.take(1010.0)
    assert (ended.main_process_memory_gb, ended.worker_memory_gb, ended.worker_count) == (None, None, None)
    assert ended.processes == ()
    assert ended.memory.total_gb


def test_without_single_processes_their_sum_is_the_main_processs_memory(tmp_path: Path) -> None:
    with training(tmp_path, "fork") as running:
        sample = sampler_of(running.pid, tmp_path, per_process=False).take(1000.0)
    assert sample.main_process_memory_gb == pytest.approx(MAIN_GB + WORKERS * WORKER_GB, rel=0.15)
    assert (sample.worker_memory_gb, sample.worker_count, sample.processes) == (None, None, ())
