"""One plan run in memory: steps advance with the given time, a training writes log text and checkpoints."""

from __future__ import annotations

import base64
import fnmatch
import json
import re
import signal
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

_BAR_WIDTH = 10
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How the training goes."""

    training_steps: int = 100
    seconds_per_step: float = 1.0
    checkpoint_every: int = 50
    sample_every: int | None = None
    other_step_seconds: float = 0.0
    #: Exit code by (step name, try); those not named end with 0.
    exit_codes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    #: A training try with an exit code other than 0 ends at this training step.
    fails_at: int | None = None
    #: The training stays alive but makes no progress after this training step.
    hangs_at: int | None = None
    #: Printed by a try before it ends with an exit code other than 0.
    last_words: str = ""
    #: Whether the error in `last_words` would be the same at every try.
    cannot_pass: bool = False
    #: Whether the training's database has a row for each step and a sample of the machine every 5 steps.
    measured: bool = False
    #: GB of the machine's memory in use in each sample, of 16.
    memory_used_gb: float = 8.0


@dataclass(slots=True, kw_only=True)
class Log:
    """The bytes of one try's log, with the wall time at some offsets."""

    inode: int
    data: bytearray = field(default_factory=bytearray)
    times: list[tuple[int, float]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Step:
    index: int
    name: str
    training: bool
    tries_allowed: int
    backoff_seconds: tuple[float, ...]
    secrets: tuple[str, ...]
    expect: tuple[str, ...]
    state: str = "pending"
    try_number: int = 0
    exit_code: int | None = None
    signal: int | None = None
    exit_known: bool = True
    started_at: float | None = None
    ended_at: float | None = None
    failure: str | None = None
    error: str | None = None
    cannot_pass: bool = False
    progress: int = 0


class FakeRun:
    """One job folder. Time only moves when a call passes a later `now`."""

    def __init__(
        self, *, root: str, script: Script, files: MutableMapping[str, bytes], mtimes: MutableMapping[str, float]
    ) -> None:
        self.root = root
        self.script = script
        self.tries_started: Counter[tuple[str, int]] = Counter()
        self.logs: dict[str, Log] = {}
        #: The rows of the training's database by table; their ids count up from 1.
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.secrets: dict[str, str] = {}
        self.supervisor_alive = False
        self.finished: dict[str, Any] | None = None
        self._files = files
        self._mtimes = mtimes
        self._plan: dict[str, Any] = {}
        self._steps: list[_Step] = []
        self._started = False
        self._boot = 1
        self._ready_at = 0.0

    def read_plan(self) -> bool:
        """Return whether there is a plan; it is read once and later changes are ignored."""
        text = self._files.get(f"{self.root}/plan.json")
        if text is not None and not self._plan:
            self._plan = json.loads(text)
            self._steps = [_step(index, value) for index, value in enumerate(self._plan["steps"])]
        return bool(self._plan)

    def start(self, now: float, secrets: Mapping[str, str]) -> None:
        """Start, or continue after the supervisor was lost; does nothing while it lives and needs nothing."""
        self.advance(now)
        if self.finished is not None:
            return
        self._started = True
        self.secrets.update(secrets)
        self.supervisor_alive = True
        self._ready_at = max(self._ready_at, now)
        self.advance(now)

    def stop(self, now: float) -> None:
        """Stop the running step; no other will start."""
        self.advance(now)
        if self.finished is not None:
            return
        step = self._current()
        if step.state == "running":
            step.state, step.failure, step.signal, step.ended_at = "stopped", "stopped", signal.SIGTERM, now
        self._finish("stopped", step if step.try_number > 0 else None, now)

    def kill_supervisor(self, now: float) -> None:
        """Act like kill -9: the running step continues, no other starts, secrets are lost."""
        self.advance(now)
        self.supervisor_alive = False
        self.secrets.clear()

    def reboot(self, now: float) -> None:
        """Restart the machine: every process is gone, the running try's exit is unknown."""
        self.kill_supervisor(now)
        self._boot += 1
        if self._started and self.finished is None and (step := self._current()).state == "running":
            step.exit_known = False
            if step.expect and all(self._matches(pattern) for pattern in step.expect):
                self._succeed(step, now)
            else:
                self._fail(step, now, "unknown_exit")

    def advance(self, now: float) -> None:
        """Do everything that would have happened until `now`."""
        while self._started and self.finished is None:
            step = self._current()
            if step.state == "running":
                ends_at = self._ends_at(step)
                self._train(step, min(now, ends_at))
                if ends_at > now:
                    return
                self._end(step, ends_at)
            elif self._may_start(step, now):
                self._start_try(step)
            else:
                return

    def status(self, now: float, *, since: Mapping[str, Any] | None, max_bytes: int = 2**20) -> dict[str, Any]:
        """Return what trackside's `status` prints, without the disk; without log and series if `since` is None."""
        self.advance(now)
        pieces, more = ([], False) if since is None else self._new_log(since.get("log", {}), max_bytes)
        series = [] if since is None else list(self._new_rows(since.get("series", {})))
        running = next((step for step in self._steps if step.state == "running"), None)
        return {
            "format": 1,
            "version": "fake",
            "wall": now,
            "monotonic": now - 1_600_000_000.0,
            "boot_id": f"boot-{self._boot}",
            "started": self._started,
            "supervisor": {"alive": self.supervisor_alive, "pid": 7 if self.supervisor_alive else None},
            "steps": [self._step_status(step) for step in self._steps],
            "finished": self.finished,
            "training_alive": running is not None and running.training,
            "needs_secrets": self._missing_secrets(),
            "heartbeat": now if self.supervisor_alive else None,
            "log": pieces,
            "more": more,
            "outputs": self.outputs(),
            "series": series,
            "gpu": [
                {
                    "index": 0,
                    "name": "Fake GPU",
                    "memory_used_mib": 1000 if running else 0,
                    "memory_total_mib": 24576,
                    "utilization_percent": 97 if running else 0,
                }
            ],
            "memory": {"total_bytes": 2**34, "available_bytes": 2**33, "swap_used_bytes": 0},
        }

    def outputs(self) -> list[dict[str, Any]]:
        """Return the declared outputs that exist."""
        found = []
        for declared in self._plan.get("outputs", ()):
            for path in self._matches(declared["pattern"]):
                full = f"{self.root}/{path}"
                size, mtime = len(self._files[full]), self._mtimes.get(full, 0.0)
                found.append({"path": path, "kind": declared["kind"], "size": size, "mtime": mtime})
        return found

    def _current(self) -> _Step:
        return next(step for step in self._steps if step.state != "done")

    def _ends_at(self, step: _Step) -> float:
        assert step.started_at is not None
        if not step.training:
            return step.started_at + self.script.other_step_seconds
        if self.script.hangs_at is not None:
            return float("inf")
        return step.started_at + self._last_training_step(step) * self.script.seconds_per_step

    def _last_training_step(self, step: _Step) -> int:
        fails = self.script.exit_codes.get((step.name, step.try_number), 0) != 0
        if fails and self.script.fails_at is not None:
            return self.script.fails_at
        return self.script.training_steps

    def _train(self, step: _Step, until: float) -> None:
        if not step.training or step.started_at is None:
            return
        reached = int((until - step.started_at) / self.script.seconds_per_step + 1e-9)
        last = self._last_training_step(step) if self.script.hangs_at is None else self.script.hangs_at
        while step.progress < min(reached, last):
            step.progress += 1
            at = step.started_at + step.progress * self.script.seconds_per_step
            self._print(step, self._bar(step.progress), at)
            self._measure(step.progress, at)
            self._save_if_due(step, at)

    def _measure(self, number: int, at: float) -> None:
        if not self.script.measured:
            return
        loss, seconds = 0.5 / (1 + number / self.script.training_steps), self.script.seconds_per_step
        self._add_row("StepMetric", {"step": number, "timestamp": at, "loss": loss, "step_time_seconds": seconds})
        if number % 5 == 1:
            free = 16.0 - self.script.memory_used_gb
            self._add_row("MetricsSample", {"timestamp": at, "total_memory_gb": 16.0, "available_memory_gb": free})

    def _add_row(self, table: str, values: Mapping[str, Any]) -> None:
        rows = self.rows.setdefault(table, [])
        rows.append({"id": len(rows) + 1, **values})

    def _save_if_due(self, step: _Step, at: float) -> None:
        number = step.progress
        name = f"{self._plan['job']}_{number:09d}"
        if number % self.script.checkpoint_every == 0 and number < self.script.training_steps:
            for pattern in self._patterns("checkpoint"):
                path = pattern.replace("*", name)
                self._write(path, safetensors_bytes(number), at)
                self._print(step, f"\n\nSaving at step {number}\nSaved checkpoint to {path}\n", at)
        if self.script.sample_every is not None and number % self.script.sample_every == 0:
            for pattern in self._patterns("sample"):
                self._write(pattern.replace("*", f"{int(at * 1000)}__{number:09d}_0.jpg"), b"\xff\xd8\xff\xd9", at)

    def _bar(self, number: int) -> str:
        total, seconds = self.script.training_steps, self.script.seconds_per_step
        filled = "█" * (_BAR_WIDTH * number // total)
        rate = f"{seconds:5.2f}s/it" if seconds >= 1 else f"{1 / seconds:5.2f}it/s"
        times = f"{_clock_text(number * seconds)}<{_clock_text((total - number) * seconds)}"
        loss = 0.5 / (1 + number / total)
        return (
            f"\r{self._plan['job']}: {100 * number // total:3d}%|{filled:<{_BAR_WIDTH}}| {number}/{total} "
            f"[{times}, {rate}, lr: 1.0e-04 loss: {loss:.3e}]"
        )

    def _end(self, step: _Step, at: float) -> None:
        step.exit_code = self.script.exit_codes.get((step.name, step.try_number), 0)
        if step.exit_code == 0:
            for pattern in step.expect:
                self._write(pattern.replace("*", self._plan["job"]), safetensors_bytes(self.script.training_steps), at)
            if step.training:
                self._print(step, "\n", at)
            self._succeed(step, at)
        else:
            self._print(step, f"\n{self.script.last_words}\n", at)
            step.error = self.script.last_words.rpartition("\n")[2] or None
            step.cannot_pass = self.script.cannot_pass
            self._fail(step, at, "exit")

    def _succeed(self, step: _Step, at: float) -> None:
        step.state, step.ended_at = "done", at
        self._ready_at = at
        if step is self._steps[-1]:
            self._finish("done", None, at)

    def _fail(self, step: _Step, at: float, failure: str) -> None:
        # Between its tries a step is pending, if another follows.
        step.state, step.ended_at, step.failure = "pending", at, failure
        if step.try_number >= step.tries_allowed or step.cannot_pass:
            step.state = "failed"
            self._finish("failed", step, at)
        else:
            waits = step.backoff_seconds or (0.0,)
            self._ready_at = at + waits[min(step.try_number, len(waits)) - 1]

    def _finish(self, result: str, step: _Step | None, at: float) -> None:
        name, exit_code = (None, None) if step is None else (step.name, step.exit_code)
        self.finished = {"result": result, "step": name, "exit_code": exit_code, "at": at}
        self.supervisor_alive = False

    def _may_start(self, step: _Step, now: float) -> bool:
        has_secrets = all(name in self.secrets for name in step.secrets)
        return self.supervisor_alive and has_secrets and now >= self._ready_at

    def _start_try(self, step: _Step) -> None:
        step.try_number += 1
        step.state, step.started_at, step.ended_at = "running", self._ready_at, None
        step.exit_code, step.signal, step.exit_known, step.failure, step.progress = None, None, True, None, 0
        step.error, step.cannot_pass = None, False
        self.tries_started[step.name, step.try_number] += 1
        self.logs[f"{step.index}.{step.try_number}"] = Log(inode=100 + len(self.logs))
        self._print(step, "Running 1 job\n" if step.training else f"{step.name}\n", self._ready_at)

    def _missing_secrets(self) -> list[str]:
        if self.finished is not None:
            return []
        wanted = {name for step in self._steps if step.state != "done" for name in step.secrets}
        return sorted(wanted - self.secrets.keys())

    def _print(self, step: _Step, text: str, at: float) -> None:
        log = self.logs[f"{step.index}.{step.try_number}"]
        if not log.times or at >= log.times[-1][1] + 1.0:
            log.times.append((len(log.data), at))
        log.data += text.encode()

    def _write(self, path: str, data: bytes, at: float) -> None:
        self._files[f"{self.root}/{path}"] = data
        self._mtimes[f"{self.root}/{path}"] = at

    def _patterns(self, kind: str) -> list[str]:
        return [declared["pattern"] for declared in self._plan.get("outputs", ()) if declared["kind"] == kind]

    def _matches(self, pattern: str) -> list[str]:
        folder, beginning = f"{self.root}/", _WILDCARD.split(pattern, maxsplit=1)[0]
        inside = [path.removeprefix(folder) for path in self._files if path.startswith(folder + beginning)]
        return sorted(
            path for path in inside if path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)
        )

    def _new_log(self, since: Mapping[str, Any], max_bytes: int) -> tuple[list[dict[str, Any]], bool]:
        pieces: list[dict[str, Any]] = []
        room = max_bytes
        for stream, log in self.logs.items():
            mark = since.get(stream)
            restarted = mark is not None and (mark["inode"] != log.inode or mark["offset"] > len(log.data))
            start = 0 if mark is None or restarted else int(mark["offset"])
            end = min(len(log.data), start + room)
            room -= end - start
            if end > start:
                pieces.append(_piece(stream, log, start, end, restarted))
            if end < len(log.data):
                return pieces, True
        return pieces, False

    def _new_rows(self, since: Mapping[str, int]) -> Iterator[dict[str, Any]]:
        for table, rows in self.rows.items():
            if new := rows[since.get(table, 0) :]:
                columns = {name: [row[name] for row in new] for name in new[0]}
                yield {"table": table, "last": new[-1]["id"], "columns": columns}

    def _step_status(self, step: _Step) -> dict[str, Any]:
        return {
            "index": step.index,
            "name": step.name,
            "training": step.training,
            "state": step.state,
            "try": step.try_number,
            "exit_code": step.exit_code,
            "signal": step.signal,
            "exit_known": step.exit_known,
            "started_at": step.started_at,
            "ended_at": step.ended_at,
            "pid": 1000 + step.index if step.state == "running" else None,
            "failure": step.failure,
            "error": step.error,
            "cannot_pass": step.cannot_pass,
        }


def safetensors_bytes(step: int) -> bytes:
    """Return a valid, tiny .safetensors file that names its training step."""
    header = json.dumps(
        {
            "__metadata__": {"step": str(step)},
            "lora.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        }
    ).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + step.to_bytes(8, "little")


def _step(index: int, value: Mapping[str, Any]) -> _Step:
    return _Step(
        index=index,
        name=value["name"],
        training=bool(value.get("training")),
        tries_allowed=int(value.get("tries", 1)),
        backoff_seconds=tuple(value.get("backoff_seconds", ())),
        secrets=tuple(value.get("secrets", ())),
        expect=tuple(value.get("expect", ())),
    )


def _piece(stream: str, log: Log, start: int, end: int, restarted: bool) -> dict[str, Any]:
    times = log.times[bisect_left(log.times, (start, 0.0)) :]
    return {
        "stream": stream,
        "inode": log.inode,
        "start": start,
        "end": end,
        "restarted": restarted,
        "data": base64.b64encode(log.data[start:end]).decode(),
        "times": [[offset - start, at] for offset, at in times if offset <= end],
    }


def _clock_text(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    text = f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{text}" if hours else text
