"""What is new in ai-toolkit's databases, as lines of the training's log that the recipe's patterns read."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from job_database import Row, State, read_rows, read_state
from recording import Recording

MARK = "[stationmaster]"
_LOOK_SECONDS = 0.5
_RECORDED_LOOKS = 5  # within that time, so that a short save is seen
_WRITTEN_AT_ONCE = 4_000  # bytes: no other output can come in between, even in a pipe
_PACE_STEPS = 9


def watch(trainer: int, database: Path, losses: Path, *, config: Path, python: str, total_steps: int) -> None:
    """Tell and record what is new as long as the process `trainer`, our parent, lives. Never disturbs it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the trainer: it ends, and then we do
    os.closerange(3, 1024)  # whoever waits for a file of the trainer's to be closed must not wait for us
    progress, recording = Progress(total_steps), Recording(trainer, database, losses, config=config, python=python)
    try:
        is_alive = True
        while is_alive:
            is_alive = os.getppid() == trainer  # before the look: the last one sees all that it has left
            rows = read_rows(losses, after=progress.last_number)
            write_lines(1, progress.news(rows, read_state(database)))
            for _ in range(_RECORDED_LOOKS if is_alive else 0):
                recording.look()
                time.sleep(_LOOK_SECONDS / _RECORDED_LOOKS)
        recording.look(is_last=True)
    except Exception as problem:  # noqa: BLE001 (a traceback of ours in the log would be read as the training's end)
        with suppress(OSError):  # as where the disk is full
            write_lines(1, [f"{MARK} progress is no longer read: {type(problem).__name__} {problem}"])


def write_lines(descriptor: int, lines: Sequence[str]) -> None:
    """Each as a line of its own, whatever bar was being drawn."""
    text = b""
    for line in lines:
        encoded = line.encode()
        if text and len(text) + len(encoded) + 1 > _WRITTEN_AT_ONCE:
            os.write(descriptor, b"\n" + text)
            text = b""
        text += encoded + b"\n"
    if text:
        os.write(descriptor, b"\n" + text)


class Progress:
    """What was told of a training, and what is new in its databases."""

    def __init__(self, total_steps: int) -> None:
        self.last_number = -1
        self._step = -1
        self._total = total_steps
        self._said = ""
        self._row: Row | None = None
        self._seconds: deque[float] = deque(maxlen=_PACE_STEPS)

    def news(self, rows: Sequence[Row], state: State | None) -> list[str]:
        """The lines to write, the newest last; `state` was read after `rows`."""
        lines = list(self._steps(rows))
        if state is None or not state.runs:
            return lines
        if self._step < 0 and state.phase == "training":
            lines.append(self._step_line(state.step))
        # The trainer prints itself what it loads; told late, that would hide the caching that its log tells meanwhile.
        info = " ".join(state.info.split())[:200] if state.phase != "loading" else "model and dataset"
        said = f"{MARK} {state.phase}: {info}"
        # A line with a step tells that it trains.
        if said != self._said or (lines and state.phase != "training"):
            lines.append(said)
        self._said = said
        return lines

    def _steps(self, rows: Sequence[Row]) -> Iterator[str]:
        for row in rows:
            self.last_number = row.number
            if self._row is not None and row.number == self._row.number + 1:
                self._seconds.append(row.at - self._row.at)
            self._row = row
            if row.number + 1 > self._step:
                yield self._step_line(row.number + 1, row)

    def _step_line(self, step: int, row: Row | None = None) -> str:
        self._step = step
        line = f"{MARK} step {step}/{self._total}"
        if row is not None and row.loss is not None and row.learning_rate is not None:
            line += f" loss {row.loss:.6g} lr {row.learning_rate:.6g}"
        # The median: the time of a save or of samples between two steps is no step's.
        if self._seconds and (pace := median(self._seconds)) > 0:
            line += f" pace {pace:.4g} s/step eta {_clock(pace * max(0, self._total - step))}"
        return line


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
