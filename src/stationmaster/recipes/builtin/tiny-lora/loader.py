"""Batches that worker processes prepare while the training computes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import shared_batches
from batches import Wanted
from dataset import Dataset
from memory import filled

_AHEAD = 2  # batches that each worker prepares in advance
_KEPT_MB_PER_BATCH = 4  # pictures at their full size, of which a batch uses a part
_LOOK_SECONDS = 1.0
_END_SECONDS = 5.0


class WorkerBatches:
    """Prepared by worker processes in turns, and handed over through shared memory."""

    def __init__(self, load: Callable[[], Dataset], wanted: Wanted, *, workers: int, keep_mb: int) -> None:
        """`load` decodes the dataset: each worker has its own copy. `keep_mb`: what each one keeps at most besides."""
        self._wanted = wanted
        self._asked = 0  # the last step that a worker was asked for
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self._workers: list[tuple[Connection, BaseProcess]] = []
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, load, wanted, keep_mb), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((ours, process))

    def batch(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Raises RuntimeError, in the words of torch, if a worker is gone."""
        last = min(step + _AHEAD * len(self._workers), self._wanted.steps)
        for later in range(max(self._asked + 1, step), last + 1):
            self._ask_for(later)
        self._asked = max(self._asked, last)
        return shared_batches.take(self._received(step))

    def close(self) -> None:
        """End the workers, and free what they had prepared."""
        for connection, process in self._workers:
            try:
                connection.send(None)
            except OSError:
                pass  # it has ended
            process.join(_END_SECONDS)
            process.kill()  # if it has not ended; harmless if it has
            process.join()
            connection.close()
            shared_batches.clear(process.pid or 0)

    def _ask_for(self, step: int) -> None:
        connection, process = self._worker_of(step)
        try:
            connection.send(step)
        except OSError:
            raise RuntimeError(_why_gone(process)) from None

    def _received(self, step: int) -> shared_batches.Parcel:
        connection, _ = self._worker_of(step)
        processes = {process.sentinel: process for _, process in self._workers}
        while True:
            ready = wait([connection, *processes])
            if connection in ready:
                try:
                    parcel: shared_batches.Parcel = connection.recv()
                    return parcel
                except (EOFError, OSError):
                    pass  # its process has ended: its sentinel tells how
            for sentinel, process in processes.items():
                if sentinel in ready or not process.is_alive():
                    raise RuntimeError(_why_gone(process))

    def _worker_of(self, step: int) -> tuple[Connection, BaseProcess]:
        return self._workers[step % len(self._workers)]


def _why_gone(process: BaseProcess) -> str:
    process.join()
    code = process.exitcode or 0
    if code >= 0:
        return f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly"
    text = f"DataLoader worker (pid {process.pid}) is killed by signal: {signal.strsignal(-code)}. "
    if -code == signal.SIGBUS:
        text += (
            "It is possible that dataloader's workers are out of shared memory. "
            "Please try to raise your shared memory limit."
        )
    return text


def _work(connection: Any, load: Callable[[], Dataset], wanted: Wanted, keep_mb: int) -> None:
    """A worker: prepare the batches that it is asked for, until the training has no more questions or is gone."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # they are for the training, which ends its workers itself
    training = os.getppid()
    dataset = load()
    kept: list[np.ndarray] = []
    while True:
        while not connection.poll(_LOOK_SECONDS):
            if os.getppid() != training:
                shared_batches.clear(os.getpid())
                return
        try:
            step = connection.recv()
        except EOFError:
            return
        if step is None:
            return
        if (len(kept) + 1) * _KEPT_MB_PER_BATCH <= keep_mb:
            kept.append(filled(_KEPT_MB_PER_BATCH))
        connection.send(shared_batches.put(*dataset.batch(wanted.size, wanted.seed, step)))
