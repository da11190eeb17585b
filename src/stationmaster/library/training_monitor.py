"""Watches a training on any machine, without the rest of Stationmaster: a log file, a pid file, an output folder.

    monitor = TrainingMonitor(remote, JobInfo(log_file="/w/train.log", pid_file="/w/pid", output_dir="/w/out"))
    found = await monitor.poll()
    if found.stall.is_stalling:
        await monitor.stop_training()

Each poll is one round trip and needs nothing but `python3` on the machine. `state()` returns what the monitor
remembers as plain JSON; a later process continues with `restore()`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.errors import CommandFailed, RemoteError
from stationmaster.parsers.base import Summary
from stationmaster.parsers.patterns import UserPattern, checked_pattern
from stationmaster.parsers.reader import LogReader
from stationmaster.remote.base import Remote, check
from stationmaster.watch.log_moment import log_moment
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.signs import SignsOfLife
from stationmaster.watch.stall import StallAnalysis, no_verdict
from stationmaster.watch.watcher import StallWatch

_POLL_SECONDS = 60.0
_STOP_GRACE_SECONDS = 10.0
_STEP_IN_NAME = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """Where the training's files are on its machine. `from_mapping` also accepts camelCase names such as `logFile`."""

    log_file: str
    pid_file: str
    output_dir: str
    framework: str = "auto"
    total_steps: int | None = None
    checkpoint_pattern: str = "*.safetensors"
    log_patterns: tuple[UserPattern, ...] = ()
    """For output that no parser knows. In a mapping, each is a string or a table with pattern, phase and fatal."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> JobInfo:
        snake = {re.sub(r"(?=[A-Z])", "_", key).lower(): value for key, value in values.items()}
        patterns = [_pattern(one) for one in snake.pop("log_patterns", ())]
        return cls(**snake, log_patterns=tuple(patterns))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCheckpoint:
    path: str
    size: int
    mtime: float
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """The result of one poll. `is_running` is None if the machine did not answer, which never means that it ended."""

    is_running: bool | None
    parsed: Summary
    stall: StallAnalysis
    checkpoints: tuple[FoundCheckpoint, ...]
    problem: str | None = None

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
    def __init__(
        self,
        remote: Remote,
        job_info: JobInfo,
        policy: StallPolicy | None = None,
        *,
        time_limit_seconds: float = 30.0,
    ) -> None:
        self._remote = remote
        self._info = job_info
        self._policy = policy or StallPolicy()
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

    def start_streaming(self, callback: Callable[[Poll], None], *, interval_seconds: float = 1.0) -> Callable[[], None]:
        """Call `callback` after every poll that read something new. Needs a running event loop.

        Returns a function that stops the streaming.
        """
        task = asyncio.create_task(self._stream(callback, interval_seconds))
        return lambda: None if task.done() else _cancel(task)

    def check_for_stall(self) -> StallAnalysis:
        """The verdict of the last poll."""
        return self._last

    async def stop_training(self, *, grace_seconds: float = _STOP_GRACE_SECONDS) -> bool:
        """Send TERM to the training's process group, then KILL, and return whether it is dead.

        Raises Unreachable if the machine does not answer, because then it is unknown.
        """
        output = await check(
            self._remote,
            ["python3", "-c", _STOP, self._info.pid_file, f"{grace_seconds:g}"],
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
        info, memory = self._info, self._memory
        argv = [
            "python3", "-c", _LOOK, info.log_file, info.pid_file, info.output_dir, info.checkpoint_pattern,
            str(memory.inode), str(memory.offset),
        ]  # fmt: skip
        return _parsed(await check(self._remote, argv, timeout=self._limit))

    def _take_in(self, answer: Mapping[str, Any]) -> None:
        memory, at = self._memory, float(answer["wall"])
        data = base64.b64decode(answer["data"])
        memory.inode, memory.offset = int(answer["inode"]), int(answer["offset"])
        readings = self._reader.feed(data, at=at) if data else []
        self._watch.observe(log_moment(readings, at=at, moved=self._signs.feed(data.decode("utf-8", "replace"))))
        look = self._watch.look(at)
        self._last = look.analysis
        memory.stall_detected_at = (memory.stall_detected_at or at) if look.analysis.is_stalling else None
        memory.checkpoints = tuple(_checkpoint(row) for row in answer["checkpoints"])
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
        before: tuple[object, ...] = ()
        pause = interval_seconds
        while True:
            found = await self.poll()
            now = (self._memory.offset, found.is_running, found.stall.is_stalling, found.problem)
            if now != before:
                callback(found)
                before = now
            # Back off while the machine does not answer, up to the usual interval between polls.
            pause = interval_seconds if found.problem is None else min(pause * 2, _POLL_SECONDS)
            await asyncio.sleep(pause)


def _pattern(given: UserPattern | str | Mapping[str, Any]) -> UserPattern:
    """Raises ConfigInvalid if the pattern is invalid."""
    if isinstance(given, UserPattern):
        return given
    return checked_pattern(given) if isinstance(given, str) else checked_pattern(**given)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _parsed(output: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        raise CommandFailed(f"the machine's answer is not JSON: {output[:200]!r}") from None
    return answer


def _checkpoint(row: Mapping[str, Any]) -> FoundCheckpoint:
    found = _STEP_IN_NAME.search(str(row["path"]).rsplit("/", 1)[-1])
    return FoundCheckpoint(
        path=str(row["path"]),
        size=int(row["size"]),
        mtime=float(row["mtime"]),
        step=int(found[1]) if found else None,
    )


_LOOK = r"""
import base64, glob, json, os, sys, time
log, pid_file, output, pattern, inode, offset = sys.argv[1:]
inode, offset, data = int(inode), int(offset), b""
try:
    with open(log, "rb") as file:
        seen = os.fstat(file.fileno())
        if offset < 0:
            file.seek(max(0, seen.st_size - 65536))
            tail = file.read()
            data = b"\n".join(tail.split(b"\n")[-101:])
            offset = seen.st_size
        else:
            if seen.st_ino != inode or seen.st_size < offset:
                offset = 0
            file.seek(offset)
            data = file.read(1 << 20)
            offset += len(data)
        inode = seen.st_ino
except OSError:
    pass
alive = False
try:
    os.kill(int(open(pid_file).read().split()[0]), 0)
    alive = True
except PermissionError:
    alive = True
except (OSError, ValueError, IndexError):
    pass
found = sorted(glob.glob(os.path.join(glob.escape(output), "**", pattern), recursive=True), key=os.path.getmtime)
rows = [{"path": path, "size": os.path.getsize(path), "mtime": os.path.getmtime(path)} for path in found]
print(json.dumps({"wall": time.time(), "inode": inode, "offset": offset, "alive": alive, "checkpoints": rows,
                  "data": base64.b64encode(data).decode()}))
"""

_STOP = r"""
import json, os, signal, sys, time
def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return not os.path.isdir("/proc/self")
def send(pid, number):
    try:
        group = os.getpgid(pid)
        os.killpg(group, number) if group != os.getpgid(0) else os.kill(pid, number)
    except ProcessLookupError:
        pass
try:
    pid = int(open(sys.argv[1]).read().split()[0])
except (OSError, ValueError, IndexError):
    print(json.dumps({"dead": True, "known": False}))
    sys.exit()
if alive(pid):
    send(pid, signal.SIGTERM)
    ends = time.monotonic() + float(sys.argv[2])
    while alive(pid) and time.monotonic() < ends:
        time.sleep(0.1)
if alive(pid):
    send(pid, signal.SIGKILL)
    ends = time.monotonic() + 5
    while alive(pid) and time.monotonic() < ends:
        time.sleep(0.1)
print(json.dumps({"dead": not alive(pid), "known": True}))
"""
