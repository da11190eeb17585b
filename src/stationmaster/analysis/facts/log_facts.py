"""What a run's log shows: its errors, how far it came, whether the trainer reached its own end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stationmaster.parsers.base import ErrorKind, Phase, Reading
from stationmaster.parsers.quotes import without_secrets
from stationmaster.parsers.reader import LogReader

_TIME = re.compile(r"^\[?(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)")
#: A handler that prints the time only when it changes: the level stands where it did on the line above.
_SAME_SECOND = re.compile(r"^ {12,}(?:INFO|WARNING|ERROR|CRITICAL|DEBUG)\b")
_TRACEBACK = "Traceback (most recent call last)"
_EXCEPTION = re.compile(r"^(?:\[rank\d+\]: ?)?(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b")
_NAN = re.compile(r"\bloss is nan\b|\b(?:avr_|step_|train_)?loss[ :=]+nan\b", re.IGNORECASE)
_BAR_LOSS = re.compile(
    r"(\d{1,9})/(\d{1,9}) \[[^\]\r\n]{0,120}?\b(?:avr_)?loss[=:] ?(nan|\d{1,12}(?:\.\d{0,12})?(?:e[-+]?\d{1,3})?)",
    re.IGNORECASE,
)
_SAVE_LOST = re.compile(
    r"could not save|failed to save|error (?:while )?saving|saving (?:the )?\w+ failed|unable to save", re.IGNORECASE
)
_WARNING = re.compile(r"^(?:\[?\d{4}-\d\d-\d\d[ T][\d:.,]+\]?)?\s*\[?WARN(?:ING)?\]?\b[:\s]+(?P<text>\S.*)")
_SOURCE = re.compile(r"\s{2,}\w+\.py:\d+\s*$")
_HOST_MEMORY = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate|not enough) memory|^MemoryError\b|\[Errno 12\] Cannot allocate memory",
    re.MULTILINE,
)
_BYTES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 1e3, "MB": 1e6, "GB": 1e9, "bytes": 1}
_TRIED = re.compile(r"[Tt]ried to allocate ([\d.]+) (KiB|MiB|GiB|KB|MB|GB|bytes)")
_CAPACITY = re.compile(r"total capacity of ([\d.]+) (MiB|GiB)(?: of which ([\d.]+) (KiB|MiB|GiB|bytes) is free)?")
_OLD_CAPACITY = re.compile(r"([\d.]+) (MiB|GiB) total capacity; .{0,80}?([\d.]+) (KiB|MiB|GiB|bytes) free")
_NEEDS_A_LOOK = re.compile(r"nan\b|warn|save|saving", re.IGNORECASE)
_BLOCK_LINES = 200
_LONGEST_LOG = 16_000_000
_MOST_LINES = 200_000  # as many as an honest log of that length has
_DETAIL_LINES = 4
_OUR_NOTE = "trackside: "  # a line of the collector, not of the trainer
_LONGEST_MESSAGE = 1_000
_LONGEST_TRACEBACK = 8_000
_MOST_WARNINGS = 15


@dataclass(slots=True, kw_only=True)
class LoggedError:
    """A problem in the log. `advanced` is set once later lines show steps beyond it: then it ended nothing."""

    kind: ErrorKind
    message: str
    fatal: bool
    at: float | None
    phase: Phase | None
    traceback: str | None = None
    advanced: bool = False
    lost_work: bool = False
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """What an allocator's message gives: what it wanted, and what was in use of how much."""

    wanted_gb: float | None = None
    used_gb: float | None = None
    capacity_gb: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    text: str
    errors: tuple[LoggedError, ...] = ()
    warnings: tuple[LoggedError, ...] = ()
    steps: int | None = None
    total_steps: int | None = None
    finished: bool = False
    """The log shows the trainer's own end."""
    failed: bool = False
    stopped: bool = False
    """The trainer reports that a person stopped it."""
    cut_off: bool = False
    """The log ends inside a line, or in the NUL bytes that a dead host leaves."""
    losses: tuple[tuple[int, float | None], ...] = ()
    """Step and loss of the bars, None for nan, for runs without rows."""

    @property
    def has_nan(self) -> bool:
        return any(error.kind is ErrorKind.NAN_LOSS for error in self.errors)

    @property
    def cause(self) -> LoggedError | None:
        """The error that ended the run; None if none did."""
        fatal = [error for error in self.errors if error.fatal and not error.advanced]
        return fatal[-1] if fatal else None

    @property
    def host_memory_refused(self) -> bool:
        """The system had no memory left for an allocation."""
        return _HOST_MEMORY.search(self.text) is not None


@dataclass(slots=True)
class _Walk:
    """The state of one walk over the lines."""

    reader: LogReader
    utc_offset: float
    asked_steps: int | None
    restarts_counting: bool
    errors: list[LoggedError] = field(default_factory=list)
    warnings: dict[str, LoggedError] = field(default_factory=dict)
    phase: Phase | None = None
    best_step: int = 0
    last_time: float | None = None
    saves_lost: dict[str, LoggedError] = field(default_factory=dict)

    def steps_before(self, total: int | None) -> int:
        """Return the steps of earlier runs: a resumed kohya counts, and totals, only those that are left."""
        if not self.restarts_counting or not self.asked_steps or not total or total >= self.asked_steps:
            return 0
        return self.asked_steps - total


def read_log(text: str, *, framework: str | None, total_steps: int | None, utc_offset: float) -> LogFacts:
    """Read a whole log. `utc_offset`: the log's local time minus UTC, in seconds."""
    if not text.strip("\0 \n\r"):
        return LogFacts(text=text, cut_off="\0" in text)
    walk = _Walk(
        reader=LogReader(framework=framework or "auto", total_steps=total_steps),
        utc_offset=utc_offset,
        asked_steps=total_steps,
        restarts_counting=framework == "kohya",
    )
    text = _within_limit(text)
    lines = text.split("\n")
    block: list[str] = []
    for place, line in enumerate(lines):
        at = _time_of(walk, line)
        whole = f"{line}\n" if place + 1 < len(lines) else line
        if at is None and not _NEEDS_A_LOOK.search(line):
            block.append(whole)
            if len(block) < _BLOCK_LINES:
                continue
            whole, line = "", ""
        _feed(walk, "".join(block), None)
        block = []
        _read(walk, line, whole, at)
    _feed(walk, "".join(block), None)
    summary = walk.reader.summary()
    tracebacks = _tracebacks(lines)
    for error in walk.errors:
        _complete(error, tracebacks, lines)
    _note_repetitions(walk.errors, text)
    for error in (*walk.errors, *walk.saves_lost.values(), *walk.warnings.values()):
        error.message = without_secrets(error.message)
        error.traceback = None if error.traceback is None else without_secrets(error.traceback)
    steps = max(summary.step or 0, walk.best_step)
    return LogFacts(
        text=text,
        errors=(*walk.errors, *walk.saves_lost.values()),
        warnings=tuple(walk.warnings.values())[:_MOST_WARNINGS],
        steps=steps or None,
        total_steps=summary.total_steps,
        finished=summary.phase is Phase.FINISHED,
        failed=summary.phase is Phase.FAILED,
        stopped=re.search(r"^\s*Job stopped\b|\bKeyboardInterrupt\b", text, re.MULTILINE) is not None,
        cut_off=text.endswith("\0") or not text.endswith("\n"),
        losses=_losses(walk, text),
    )


def first_time_in(text: str) -> float | None:
    """Return the first time that a line begins with, as if it were UTC."""
    for line in text.splitlines():
        if found := _TIME.match(line):
            return _seconds(found)
    return None


def out_of_memory_of(message: str) -> OutOfMemory:
    """Return the figures in an allocator's message.

    >>> out_of_memory_of("Tried to allocate 2.00 GiB. … a total capacity of 24.00 GiB of which 1.00 GiB is free.")
    OutOfMemory(wanted_gb=2.0, used_gb=23.0, capacity_gb=24.0)
    """
    tried = _TRIED.search(message)
    wanted = _gigabytes(tried[1], tried[2]) if tried else None
    for pattern in (_CAPACITY, _OLD_CAPACITY):
        if found := pattern.search(message):
            capacity = _gigabytes(found[1], found[2])
            used = None if found[3] is None else capacity - _gigabytes(found[3], found[4])
            return OutOfMemory(wanted_gb=wanted, used_gb=used, capacity_gb=capacity)
    return OutOfMemory(wanted_gb=wanted)


def _gigabytes(amount: str, unit: str) -> float:
    return float(amount) * _BYTES[unit] / 2**30


def _feed(walk: _Walk, text: str, at: float | None) -> None:
    if text:
        for reading in walk.reader.feed(text.encode("utf-8", "replace"), at=at):
            _take(walk, reading, at)


def _within_limit(text: str) -> str:
    """Return the beginning and the end of a log that is too long, or has too many lines, to be read whole."""
    if len(text) > _LONGEST_LOG:
        text = f"{text[: _LONGEST_LOG // 4]}\n{text[-_LONGEST_LOG * 3 // 4 :]}"
    if text.count("\n") <= _MOST_LINES:
        return text
    lines = text.split("\n")
    return "\n".join((*lines[: _MOST_LINES // 4], *lines[-_MOST_LINES * 3 // 4 :]))


def _read(walk: _Walk, line: str, whole: str, at: float | None) -> None:
    if _NAN.search(line):
        _add_nan(walk, line, at)
    _feed(walk, whole, at)
    if found := _WARNING.match(line):
        message = _SOURCE.sub("", found["text"]).strip()
        walk.warnings.setdefault(
            message, LoggedError(kind=ErrorKind.OTHER, message=message, fatal=False, at=at, phase=walk.phase)
        )
    if _SAVE_LOST.search(line) and not any(error.message in line for error in walk.errors[-1:]):
        message = line.strip()[:_LONGEST_MESSAGE]
        walk.saves_lost.setdefault(
            message,
            LoggedError(kind=ErrorKind.OTHER, message=message, fatal=False, at=at, phase=Phase.SAVING, lost_work=True),
        )


def _take(walk: _Walk, reading: Reading, at: float | None) -> None:
    if reading.step is not None:
        step = reading.step + walk.steps_before(reading.total_steps)
        if step > walk.best_step:
            walk.best_step = step
            for error in walk.errors:
                error.advanced = True
    if reading.error is not None and reading.error.kind is not ErrorKind.NAN_LOSS:
        walk.errors.append(
            LoggedError(
                kind=reading.error.kind,
                message=reading.error.message,
                fatal=reading.error.fatal,
                at=at,
                phase=walk.phase,
            )
        )
    elif reading.error is not None:
        _add_nan(walk, reading.error.message, at)
    if reading.phase is not None and reading.phase is not Phase.FAILED:
        walk.phase = reading.phase


def _add_nan(walk: _Walk, line: str, at: float | None) -> None:
    for error in walk.errors:
        if error.kind is ErrorKind.NAN_LOSS:
            error.count += 1
            return
    shown = line.rstrip().rsplit("\r", 1)[-1].strip()
    found = _NAN.search(line)
    if found is not None and found[0].casefold().endswith("is nan"):
        message = found[0]  # glued to the end of a bar
    else:
        message = shown if len(shown) <= 200 else f"loss is nan: {found[0] if found else shown[-120:]}"
    walk.errors.append(LoggedError(kind=ErrorKind.NAN_LOSS, message=message, fatal=False, at=at, phase=walk.phase))


def _losses(walk: _Walk, text: str) -> tuple[tuple[int, float | None], ...]:
    """Return step and loss of every redraw of the training's bar; None for nan."""
    found = []
    for step, total, loss in _BAR_LOSS.findall(text):
        known = None if loss.casefold() == "nan" else float(loss)
        found.append((int(step) + walk.steps_before(int(total)), known))
    return tuple(found)


def _time_of(walk: _Walk, line: str) -> float | None:
    found = _TIME.match(line)
    if found is None:
        return walk.last_time if _SAME_SECOND.match(line) else None
    local = _seconds(found)
    if local is None:
        return None
    walk.last_time = local - walk.utc_offset
    return walk.last_time


def _seconds(found: re.Match[str]) -> float | None:
    year, month, day, hour, minute, second = (int(part) for part in found.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _tracebacks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each traceback begins, and the line of its exception."""
    found = []
    place = 0
    while place < len(lines):
        if _TRACEBACK in lines[place]:
            end = place + 1
            while end < len(lines) and not _EXCEPTION.match(lines[end]):
                end += 1
            if end < len(lines):
                found.append((place, end))
            place = end
        place += 1
    return found


def _complete(error: LoggedError, tracebacks: Sequence[tuple[int, int]], lines: Sequence[str]) -> None:
    """Give an error the traceback that ends in it, with its exception's own line as the message."""
    if error.kind is ErrorKind.NAN_LOSS:
        return
    mark = error.message[:60]
    for start, end in tracebacks:
        if mark in lines[end] or lines[end].strip() in error.message:
            error.traceback = "\n".join(lines[start : end + 1])[-_LONGEST_TRACEBACK:]
            error.message = _with_details(lines, end)
            return
    place = next((place for place, line in enumerate(lines) if mark and mark in line), None)
    if place is not None and error.kind is ErrorKind.AUTH:
        error.message = _with_details(lines, place)


def _with_details(lines: Sequence[str], place: int) -> str:
    """Return an exception's line with the lines of its message that follow."""
    parts = [lines[place].strip()]
    for line in lines[place + 1 : place + 2 + _DETAIL_LINES]:
        text = line.strip()
        if text.startswith(_OUR_NOTE):
            continue
        if _TRACEBACK in line or "%|" in line or (text and not text.strip("=#-")) or _TIME.match(line):
            break
        if text:
            parts.append(text)
    return " ".join(parts)[:_LONGEST_MESSAGE]


def _note_repetitions(errors: Sequence[LoggedError], text: str) -> None:
    for error in errors:
        if error.kind is ErrorKind.OOM and not error.fatal:
            error.count = max(1, len(re.findall(r"OOM during training step, skipping batch", text)))
