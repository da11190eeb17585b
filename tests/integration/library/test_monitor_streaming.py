"""A monitor's stream: one connection, opened again when it breaks, with polls in between and no line lost."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from stationmaster.errors import Unreachable
from stationmaster.library import Poll, TrainingMonitor
from stationmaster.remote.base import Completed
from stationmaster.remote.local import LocalRemote, LocalStream
from tests.support.asynchronous_tests import asynchronous, until


class _CutStream:
    """A stream that ends with Unreachable as soon as it is cut."""

    def __init__(self, inner: LocalStream, remote: _Machine) -> None:
        self._inner, self._remote = inner, remote

    @property
    def exit_status(self) -> int | None:
        return self._inner.exit_status

    @property
    def stderr(self) -> bytes:
        return self._inner.stderr

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            if self._remote.cuts > 0:
                self._remote.cuts -= 1
                raise Unreachable("the connection broke")  # what this chunk said is lost
            yield chunk


class _Machine(LocalRemote):
    """This computer, over connections that are counted, cut and refused."""

    def __init__(self, root: Path) -> None:
        super().__init__(root=root, environment={"PATH": os.environ["PATH"]})
        self.streams = self.runs = self.cuts = 0
        self.refuses_streams = False

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.runs += 1
        return await super().run(argv, **options)

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, timeout_idle: float | None = None) -> AsyncIterator[Any]:
        self.streams += 1
        if self.refuses_streams:
            raise Unreachable("no streams here")
        async with super().stream(argv, timeout_idle=timeout_idle) as inner:
            yield _CutStream(inner, self)


class _Watched:
    """A log that the test writes, and what its monitor streamed."""

    def __init__(self, folder: Path) -> None:
        self.machine = _Machine(folder)
        self.log = folder / "train.log"
        self.log.touch()
        (folder / "pid").write_text(str(os.getpid()))
        (folder / "out").mkdir()
        info = {"logFile": str(self.log), "pidFile": str(folder / "pid"), "outputDir": str(folder / "out")}
        self.monitor = TrainingMonitor(self.machine, info, {"gracePeriod": 600_000, "stallThreshold": 0.4})
        self.polls: list[Poll] = []

    def write(self, step: int) -> None:
        with self.log.open("a") as log:
            log.write(f"step {step}/900 loss 0.5\nSaved checkpoint to out/{step}.safetensors\n")

    async def seen(self, step: int) -> None:
        await until(lambda: bool(self.polls) and self.polls[-1].step == step, what=f"step {step} streamed")

    def saved(self) -> list[str]:
        return list(self.polls[-1].parsed.checkpoints)


@asynchronous
async def test_a_stream_is_one_connection_and_no_poll(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    stop = watched.monitor.start_streaming(watched.polls.append)
    for step in (10, 20, 30):
        watched.write(step)
        await watched.seen(step)
    assert (watched.machine.streams, watched.machine.runs) == (1, 0)
    assert [(watched.polls[-1].total, watched.polls[-1].loss, watched.polls[-1].is_running)] == [(900, 0.5, True)]
    await stop()


@asynchronous
async def test_a_stream_that_breaks_is_opened_again_and_loses_no_line(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    stop = watched.monitor.start_streaming(watched.polls.append, interval_seconds=0.05)
    steps = list(range(1, 13))
    for step in steps:
        watched.machine.cuts = step % 2
        watched.write(step)
        await watched.seen(step)
    assert watched.saved() == [f"out/{step}.safetensors" for step in steps]
    assert watched.machine.streams > 1
    await stop()


@asynchronous
async def test_a_machine_without_streams_is_polled(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    watched.machine.refuses_streams = True
    stop = watched.monitor.start_streaming(watched.polls.append, interval_seconds=0.05)
    for step in (1, 2, 3):
        watched.write(step)
        await watched.seen(step)
    assert watched.saved() == [f"out/{step}.safetensors" for step in (1, 2, 3)]
    watched.machine.refuses_streams = False
    polled = watched.machine.runs
    assert polled >= 3
    watched.write(4)
    await watched.seen(4)
    await stop()


@asynchronous
async def test_what_looks_on_the_machine_ends_with_the_stream(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    stop = watched.monitor.start_streaming(watched.polls.append)
    watched.write(1)
    await watched.seen(1)
    assert _lookers(watched.log)
    await stop()
    await until(lambda: not _lookers(watched.log), what="the end of the look")


def _lookers(log: Path) -> list[str]:
    """Processes of this computer that follow the log."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(log).encode() in words:
                found.append(entry.name)
    return found
