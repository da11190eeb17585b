"""Watches a training on any machine, without the rest of Stationmaster: a log file, a pid file, an output folder.

    monitor = TrainingMonitor(remote, {"logFile": "/w/train.log", "pidFile": "/w/pid", "outputDir": "/w/out"})
    found = await monitor.poll()
    if found.stall.is_stalling:
        await monitor.stop_training()

Each poll is one round trip and needs nothing but `python3` on the machine; a stream is one connection that stays open.
`state()` returns what the monitor remembers as plain JSON; a later process continues with `restore()`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.errors import CommandFailed, RemoteError
from stationmaster.library.checkpoints import FoundCheckpoint, in_order
from stationmaster.library.job_info import JobInfo, policy_from
from stationmaster.library.machine_programs import LOOK, STOP
from stationmaster.parsers.base import Summary
from stationmaster.parsers.reader import LogReader
from stationmaster.remote.base import Remote, Stream, check
from stationmaster.watch.log_moment import log_moment
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.signs import SignsOfLife
from stationmaster.watch.stall import StallAnalysis, no_verdict
from stationmaster.watch.watcher import StallWatch

_POLL_SECONDS = 60.0
_STOP_GRACE_SECONDS = 10.0
_LOOK_SECONDS = 0.2  # between two looks of a stream, on the machine
_SILENCE_SECONDS = 30.0  # a stream speaks every ten seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """The result of one poll. `is_running` is None if the machine did not answer, which never means that it ended."""

    is_running: bool | None
    parsed: Summary
    stall: StallAnalysis
    checkpoints: tuple[FoundCheckpoint, ...]
    problem: str | None = None

    @property
    def step(self) -> int | None:
        return self.parsed.step

    @property
    def total(self) -> int | None:
        return self.parsed.total_steps

    @property
    def loss(self) -> float | None:
        return self.parsed.loss

    def as_json(self) -> dict[str, Any]:
        return {
            "isRunning": self.is_running,
            "parsed": self.parsed.as_json(),
            "stallAnalysis": self.stall.as_json(),
            "checkpoints": [{"path": one.path, "size": one.size, "step": one.step} for one in self.checkpoints],
            "problem": self.problem,
        }


@dataclass(slots=True)
class _Memory:
    """What a monitor remembers between polls."""

    inode: int = 0
    offset: int = -1  # nothing read yet: start with the last lines
    checkpoints: tuple[FoundCheckpoint, ...] = ()
    eta_history: list[dict[str, float]] = field(default_factory=list)
    speed_history: list[dict[str, float]] = field(default_factory=list)
    stall_detected_at: float | None = None


class TrainingMonitor:
    """Job info and thresholds may be plain mappings: see `JobInfo.from_mapping` and `policy_from`."""

    def __init__(
        self,
        remote: Remote,
        job_info: JobInfo | Mapping[str, Any],
        policy: StallPolicy | Mapping[str, Any] | None = None,
        *,
        time_limit_seconds: float = 30.0,
    ) -> None:
        """Raises ConfigInvalid."""
        job_info = job_info if isinstance(job_info, JobInfo) else JobInfo.from_mapping(job_info)
        self._remote = remote
        self._info = job_info
        self._policy = policy if isinstance(policy, StallPolicy) else policy_from(policy or {})
        self._limit = time_limit_seconds
        self._reader = LogReader(
            framework=job_info.framework, total_steps=job_info.total_steps, patterns=job_info.log_patterns
        )
        self._watch = StallWatch(self._policy, total_steps=job_info.total_steps)
        self._signs = SignsOfLife()
        self._memory = _Memory()
        self._last = no_verdict("Nothing was read yet.")

    async def poll(self) -> Poll:
        """Read new output and judge it. If the machine does not answer, return what was known, without a verdict."""
        try:
            answer = await self._ask()
        except RemoteError as problem:
            return self._poll(is_running=None, problem=str(problem))
        self._take_in(answer)
        return self._poll(is_running=bool(answer["alive"]))

    def start_streaming(
        self, callback: Callable[[Poll], None], *, interval_seconds: float = 1.0
    ) -> Callable[[], Awaitable[object]]:
        """Call `callback` with everything new, a fraction of a second after it is written. Needs a running event loop.

        One connection stays open. When it breaks, the monitor polls every `interval_seconds` and opens it again; both
        continue where the last answer ended, so no line is lost. Returns a function that stops the streaming; awaiting
        what it returns waits until the connection is closed.
        """
        task = asyncio.create_task(self._stream(callback, interval_seconds))
        return lambda: _cancelled(task)

    def check_for_stall(self) -> StallAnalysis:
        """The verdict of the last poll."""
        return self._last

    async def stop_training(self, *, grace_seconds: float = _STOP_GRACE_SECONDS) -> bool:
        """Send TERM to the training's process group, then KILL, and return whether it is dead.

        Raises Unreachable if the machine does not answer, because then it is unknown.
        """
        output = await check(
            self._remote,
            ["python3", "-c", STOP, self._info.pid_file, f"{grace_seconds:g}"],
            timeout=self._limit + grace_seconds,
        )
        return bool(_parsed(output)["dead"])

    async def get_checkpoints(self) -> tuple[FoundCheckpoint, ...]:
        """Poll, and return the checkpoints in the output folder, the latest step last."""
        await self.poll()
        return self._memory.checkpoints

    def state(self) -> dict[str, Any]:
        """Everything that the monitor remembers, as plain JSON."""
        memory = self._memory
        return {
            "reader": self._reader.state(),
            "watch": self._watch.state(),
            "signs": self._signs.state(),
            "inode": memory.inode,
            "offset": memory.offset,
            "etaHistory": memory.eta_history,
            "speedHistory": memory.speed_history,
            "stallDetectedAt": memory.stall_detected_at,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from where `state` was taken."""
        self._reader = LogReader.restore(state["reader"])
        self._watch = StallWatch.restore(state["watch"], self._policy, total_steps=self._info.total_steps)
        self._signs = SignsOfLife.restore(state["signs"])
        self._memory = _Memory(
            inode=state["inode"],
            offset=state["offset"],
            eta_history=list(state["etaHistory"]),
            speed_history=list(state["speedHistory"]),
            stall_detected_at=state["stallDetectedAt"],
        )

    async def _ask(self) -> dict[str, Any]:
        return _parsed(await check(self._remote, self._look(every_seconds=0), timeout=self._limit))

    def _look(self, *, every_seconds: float) -> list[str]:
        info, memory = self._info, self._memory
        return [
            "python3", "-c", LOOK, info.log_file, info.pid_file, info.output_dir, info.checkpoint_pattern,
            str(memory.inode), str(memory.offset), f"{every_seconds:g}",
        ]  # fmt: skip

    def _take_in(self, answer: Mapping[str, Any]) -> None:
        memory, at = self._memory, float(answer["wall"])
        data = base64.b64decode(answer["data"])
        memory.inode, memory.offset = int(answer["inode"]), int(answer["offset"])
        readings = self._reader.feed(data, at=at) if data else []
        self._watch.observe(log_moment(readings, at=at, moved=self._signs.feed(data.decode("utf-8", "replace"))))
        look = self._watch.look(at)
        self._last = look.analysis
        memory.stall_detected_at = (memory.stall_detected_at or at) if look.analysis.is_stalling else None
        memory.checkpoints = in_order(answer["checkpoints"])
        self._remember_pace(at)

    def _remember_pace(self, at: float) -> None:
        read = self._reader.summary()
        memory = self._memory
        if read.eta_seconds is not None and read.step is not None:
            memory.eta_history = [
                *memory.eta_history, {"timestamp": at, "eta": read.eta_seconds, "step": float(read.step)}
            ][-20:]  # fmt: skip
        if read.steps_per_second is not None:
            memory.speed_history = [
                *memory.speed_history, {"timestamp": at, "stepsPerSec": read.steps_per_second}
            ][-20:]  # fmt: skip

    def _poll(self, *, is_running: bool | None, problem: str | None = None) -> Poll:
        return Poll(
            is_running=is_running,
            parsed=self._reader.summary(),
            stall=self._last if problem is None else no_verdict("The machine did not answer."),
            checkpoints=self._memory.checkpoints,
            problem=problem,
        )

    async def _stream(self, callback: Callable[[Poll], None], interval_seconds: float) -> None:
        report = _Report(self, callback)
        pause = interval_seconds
        while True:
            try:
                argv = self._look(every_seconds=_LOOK_SECONDS)
                async with self._remote.stream(argv, timeout_idle=_SILENCE_SECONDS) as stream:
                    async for answer in _answers(stream):
                        self._take_in(answer)
                        report.tell(self._poll(is_running=bool(answer["alive"])))
                        pause = interval_seconds
            except RemoteError:
                pass  # the poll that follows says what is wrong, if anything
            found = await self.poll()
            report.tell(found)
            # Back off while the machine does not answer, up to the usual interval between polls.
            pause = interval_seconds if found.problem is None else min(pause * 2, _POLL_SECONDS)
            await asyncio.sleep(pause)


class _Report:
    """Calls back with what is new."""

    def __init__(self, monitor: TrainingMonitor, callback: Callable[[Poll], None]) -> None:
        self._monitor, self._callback = monitor, callback
        self._before: tuple[object, ...] = ()

    def tell(self, found: Poll) -> None:
        memory = self._monitor._memory
        now = (memory.inode, memory.offset, found.is_running, found.stall.is_stalling, found.problem, found.checkpoints)
        if now != self._before:
            self._before = now
            self._callback(found)


async def _answers(stream: Stream) -> AsyncIterator[dict[str, Any]]:
    """The lines of JSON that a stream brings; a line that was cut is left to the next connection."""
    rest = b""
    async for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield _parsed(line)


def _cancelled(task: asyncio.Task[None]) -> Awaitable[object]:
    task.cancel()
    return asyncio.gather(task, return_exceptions=True)


def _parsed(output: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        raise CommandFailed(f"the machine's answer is not JSON: {output[:200]!r}") from None
    return answer
