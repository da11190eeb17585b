"""LogReader: reads a training's output in chunks cut anywhere, and sums up the state of the training."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stationmaster.parsers import stages
from stationmaster.parsers.bars import ANY_REDRAWS, Bar, RedrawShape, run_of_redraws, shape_of_redraws, split_bars
from stationmaster.parsers.base import ErrorKind, Parsed, Phase, Reading, Summary
from stationmaster.parsers.budget import Budget
from stationmaster.parsers.carrying import QuietRuns, may_carry
from stationmaster.parsers.errors import notice
from stationmaster.parsers.lines import Line, read_line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.patterns import UserPattern
from stationmaster.parsers.pieces import find_end, is_binary, shown_texts
from stationmaster.parsers.registry import AUTO, bar_readers, find_family, in_order, recognise
from stationmaster.saved_state import from_json, to_json

_STATE_VERSION = 1
_CACHES = re.compile(r"\bin cache_(?:batch_)?(?:latents|text)")
_HEAD_ALONE = re.compile(r"\s*([^%|]{1,100}?): *(?:\d{1,3}%)?\s*$")


class LogReader:
    """Reads one training's log as it grows. `summary()` does not depend on how the bytes were cut into chunks."""

    def __init__(
        self, framework: str = AUTO, total_steps: int | None = None, patterns: Sequence[UserPattern] = ()
    ) -> None:
        self._hint = framework
        self._patterns = tuple(patterns)
        self._pending = b""
        self._shape: re.Pattern[bytes] | None = None
        self._shaped_by = b""
        self._last_shape: RedrawShape | None = None
        self._last_bar = b""
        self._reported: tuple[object, ...] | None = None
        hinted = find_family(framework)
        self._memory = Memory(configured_total=total_steps, family=hinted.name if hinted else None)

    def feed(self, data: bytes, at: float | None = None, budget: Budget | None = None) -> list[Reading]:
        """Read the next bytes; returns their readings in order, with `at` as their time.

        The last bar drawn is reported at once, although nothing has ended it yet. Once the budget is spent, most of the
        rest is left out.
        """
        readings: list[Reading] = []
        buffer, position, is_cut = self._pending + data, 0, False
        quiet_runs = QuietRuns(buffer)
        bar = b""  # the last one of those that were left out
        while True:
            if budget is not None and budget.is_spent() and not is_cut:
                buffer, position, is_cut = budget.kept(buffer[position:]), 0, True
                quiet_runs = QuietRuns(buffer)
            if self._shape is not None and not self._memory.is_stopped and (run := self._shape.match(buffer, position)):
                readings += self._read_piece(bar, at) + self._read_piece(run[1], at)
                bar, position = b"", run.end()
                if budget is not None:
                    budget.spend(run[1])
                continue
            if budget is not None and budget.bars <= 0 and (run := ANY_REDRAWS.match(buffer, position)):
                bar, position = run[1], run.end()
                continue
            may_pass = self._may_pass_over()
            if may_pass and (run_end := quiet_runs.end_of_run(position)) > position:
                self._pass_over(quiet_runs.last_shown(position, run_end))
                position = run_end
                continue
            end = find_end(buffer, position)
            if end is None:
                break
            if end[0] > position:
                piece = buffer[position : end[0]]
                carries = not may_pass or quiet_runs.has_judged(position) or may_carry(piece)
                if not carries or is_binary(piece):
                    self._pass_over(piece)
                else:
                    readings += self._read_piece(bar, at) + self._read_piece(piece, at)
                    bar = b""
                    is_bar = self._take_shape(piece)
                    if budget is not None:
                        budget.spend(piece)
                        budget.bars -= is_bar
            position = end[1]
        readings += self._read_piece(bar, at)
        self._pending = buffer[position:]
        return self._without_repetition([*readings, *self._unfinished_bar(at)])

    def summary(self) -> Summary:
        """The state of the training after everything read so far, including an unfinished last line."""
        return (self._with_pending() if self._pending else self._memory).summary()

    def state(self) -> dict[str, Any]:
        """All that `restore` needs to continue, as plain JSON; a few kilobytes."""
        return {
            "version": _STATE_VERSION,
            "framework": self._hint,
            "patterns": [pattern.as_json() for pattern in self._patterns],
            "pending": self._pending.decode("latin-1"),
            "shaped_by": self._shaped_by.decode("latin-1"),
            "last_bar": self._last_bar.decode("latin-1"),
            "memory": to_json(self._memory),
            "told": list(self._reported) if self._reported else None,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> LogReader:
        """A reader that continues exactly where the one that gave `state` was."""
        reader = cls(framework=state["framework"], patterns=[UserPattern(**pattern) for pattern in state["patterns"]])
        reader._memory = from_json(Memory, state["memory"])
        reader._pending = state["pending"].encode("latin-1")
        reader._shaped_by = state["shaped_by"].encode("latin-1")
        shape = shape_of_redraws(reader._shaped_by)
        reader._shape = None if shape is None else run_of_redraws(shape)
        reader._last_bar = state.get("last_bar", "").encode("latin-1")
        reader._last_shape = shape_of_redraws(reader._last_bar)
        reader._reported = tuple(state["told"]) if state["told"] else None
        return reader

    def _may_pass_over(self) -> bool:
        """Whether pieces that cannot carry anything alone mean nothing here either; a user's pattern sees all."""
        return not (self._patterns or self._memory.is_in_block() or self._memory.announced == Phase.EVALUATING)

    def _pass_over(self, piece: bytes) -> None:
        """Take note that a piece came which carries nothing: it only ends what the one before it began."""
        if self._memory.is_in_block():
            return
        for text in shown_texts(piece):
            if text.strip():
                self._memory.headed = self._memory.background = False
                self._memory.bar_head = _head_alone(text)

    def _read_piece(self, piece: bytes, at: float | None) -> list[Reading]:
        if not piece:
            return []
        readings: list[Reading] = []
        for text in shown_texts(piece):
            readings += _read_text(text, self._memory, self._patterns, at)
        return readings

    def _take_shape(self, piece: bytes) -> bool:
        """Whether the piece is a bar. From its second redraw on, skip them; a user's pattern sees them all."""
        shape = shape_of_redraws(piece)
        if shape is None or self._patterns:
            return shape is not None
        if shape == self._last_shape:
            self._shape, self._shaped_by = run_of_redraws(shape), piece
        self._last_shape, self._last_bar = shape, piece
        return True

    def _unfinished_bar(self, at: float | None) -> Iterable[Reading]:
        """The progress in a bar that is drawn but not yet ended; all else waits for its line's end."""
        if not self._pending.rstrip(b" ").endswith(b"]") or is_binary(self._pending):
            return []
        text = shown_texts(self._pending)[-1]
        if not isinstance(split_bars(text)[-1], Bar):
            return []
        readings = _read_text(text, self._memory.clone(), self._patterns, at)
        moving = [reading for reading in readings if reading.step is not None]
        return [_progress_alone(reading) for reading in moving[-1:]]

    def _with_pending(self) -> Memory:
        memory = self._memory.clone()
        for text in shown_texts(self._pending) if not is_binary(self._pending) else ():
            _read_text(text, memory, self._patterns, None)
        return memory

    def _without_repetition(self, readings: list[Reading]) -> list[Reading]:
        kept = []
        for reading in readings:
            progress = reading.progress()
            if reading.error is None and reading.checkpoint is None and progress == self._reported:
                continue
            self._reported = progress
            kept.append(reading)
        return kept


def _read_text(text: str, memory: Memory, patterns: tuple[UserPattern, ...], at: float | None) -> list[Reading]:
    if not text.strip():
        return []
    for pattern in patterns:
        if parsed := pattern.read(text):
            return memory.apply(parsed, at)
    readings: list[Reading] = []
    for part in split_bars(text):
        parsed = _read_bar(_with_head(part, memory), memory) if isinstance(part, Bar) else _read_words(part, memory)
        if parsed is not None:
            readings += memory.apply(parsed, at)
    memory.bar_head = _head_alone(text)
    return readings


def _progress_alone(reading: Reading) -> Reading:
    is_alone = reading.error is None and reading.checkpoint is None
    return reading if is_alone else dataclasses.replace(reading, error=None, checkpoint=None)


def _head_alone(text: str) -> str:
    """A bar's description that stands alone on its line; the bar comes on the next one."""
    head = _HEAD_ALONE.match(text) if text.rstrip().endswith(("%", ":")) else None
    return head[1] if head else ""


def _with_head(bar: Bar, memory: Memory) -> Bar:
    """A notebook's text has a bar's description on the line above its counter."""
    is_headless = memory.bar_head and not bar.description and "%" not in bar.text
    return dataclasses.replace(bar, description=memory.bar_head) if is_headless else bar


def _read_bar(bar: Bar, memory: Memory) -> Parsed | None:
    for family in bar_readers(memory.family):
        if family.read_bar and (parsed := family.read_bar(bar, memory)):
            memory.family = memory.family or family.name
            return parsed
    return stages.read_bar(bar, memory)


def _read_words(text: str, memory: Memory) -> Parsed | None:
    if memory.in_traceback and memory.traceback_prefix:
        text = text.removeprefix(memory.traceback_prefix)
    line = read_line(text)
    noticed = notice(line, in_traceback=memory.in_traceback, background=memory.background)
    if noticed.in_traceback and not memory.in_traceback:
        memory.traceback_prefix = text.partition("Traceback (")[0] if "Traceback (" in text else ""
    elif not memory.in_traceback:
        memory.headed = noticed.fault is not None and noticed.fault.kind == ErrorKind.OTHER and not noticed.fault.fatal
    if memory.in_traceback and _CACHES.search(text):
        memory.disown_bar()  # what failed was the caching that its bar counted
    memory.in_traceback = noticed.in_traceback
    memory.background = noticed.background
    if memory.family is None:
        memory.family = recognise(text.lower())  # a logger's name before the message is a sign too
    if noticed.fault is None and noticed.swallow:
        return None
    parsed = _ask_families(line, memory) if noticed.fault is None or not memory.in_traceback else None
    if noticed.fault is None:
        return parsed
    if parsed is not None and parsed.fault is not None:
        return parsed
    if noticed.fault.fatal and noticed.fault.kind in (ErrorKind.DISK_FULL, ErrorKind.OTHER):
        memory.forget_failed_save()
    return Parsed(fault=noticed.fault)


def _ask_families(line: Line, memory: Memory) -> Parsed | None:
    for family in in_order(memory.family):
        if family.read_line and (parsed := family.read_line(line, memory)):
            return parsed
    return None
