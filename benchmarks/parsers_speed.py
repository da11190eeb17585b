"""Speed of reading tqdm output on one core, for usual and for very dense output.

Besides the absolute budget there is one that holds on any computer: the log reader, which interprets what it reads, is
no slower than a plain scan of the same bytes, a loop over the lines with one regular expression.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Iterator

from _report import report
from stationmaster.parsers import LogReader

NAMES = {
    "parsers: tqdm output read on one core": ("ai-toolkit", "kohya", "hf-trainer"),
    "parsers: tqdm output with a record every 50 steps, or a line for each redraw": ("hf-trainer-dense", "lines"),
}
BUDGET_MB_PER_SECOND = 20.0
LEAST_TIMES_PLAIN_SCAN = 1.0
MEGABYTES = 24
REPEATS = 3  # the best counts: the machine may be busy
CHUNK_BYTES = 64 * 1024
_BLOCKS = " ▏▎▍▌▋▊▉█"
_LINE_ENDS = re.compile(r"[\r\n]+")
_BAR = re.compile(r"(\d+)/(\d+) \[.*?(?:loss[=:] ?([\d.e+-]+))?\]")


def main() -> int:
    """Read some megabytes of each kind of output in chunks, as a worker receives it."""
    for name, kinds in NAMES.items():
        outputs = [_output(kind) for kind in kinds]
        speeds = [_best_of(output) for output in outputs]
        report(name, min(read for read, _ in speeds), "MB/s", at_least=BUDGET_MB_PER_SECOND)
        ratio = min(read / scanned for read, scanned in speeds)
        report(f"{name}, of a plain scan", ratio, "times", at_least=LEAST_TIMES_PLAIN_SCAN)
    return 0


def _best_of(data: bytes) -> tuple[float, float]:
    """The log reader's speed and that of a plain scan, which take turns."""
    speeds = [(_read_speed(data), _scan_speed(data)) for _ in range(REPEATS)]
    return max(read for read, _ in speeds), max(scanned for _, scanned in speeds)


def _read_speed(data: bytes) -> float:
    reader = LogReader()
    started = time.process_time()
    for start in range(0, len(data), CHUNK_BYTES):
        reader.feed(data[start : start + CHUNK_BYTES])
    seconds = time.process_time() - started
    if reader.summary().step is None:
        raise SystemExit("nothing was read: the measure is worthless")
    return len(data) / 1e6 / seconds


def _scan_speed(data: bytes) -> float:
    bars, rest = 0, ""
    started = time.process_time()
    for start in range(0, len(data), CHUNK_BYTES):
        *lines, rest = _LINE_ENDS.split(rest + data[start : start + CHUNK_BYTES].decode("utf-8", "replace"))
        for line in lines:
            if _BAR.search(line):
                bars += 1
    seconds = time.process_time() - started
    if not bars:
        raise SystemExit("nothing was found: the measure is worthless")
    return len(data) / 1e6 / seconds


def _output(kind: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    for piece in _pieces(kind):
        parts.append(piece)
        size += len(piece)
        if size >= MEGABYTES * 1e6 / 3:
            break
    return b"".join(parts)


def _pieces(kind: str) -> Iterator[bytes]:
    """A bar redrawn ten times a second, a hundred steps to a log record, a save now and then."""
    random.seed(kind)
    total = 400_000
    for step in range(1, total):
        loss = 0.3 + random.random() / 10
        bar = _bar(step, total)
        if kind == "ai-toolkit":
            yield f"\rteapot_v2: {bar}, lr: 1.0e-04 loss: {loss:.3e}]".encode()
        elif kind == "kohya":
            yield f"\rsteps: {bar}, avr_loss={loss:.4f}]".encode()
        elif kind == "lines":  # not a terminal: every redraw is a separate line
            yield f"steps: {bar}, avr_loss={loss:.4f}]\n".encode()
        else:
            yield f"\r{bar}]".encode()
            if step % (50 if kind.endswith("dense") else 100) == 0:  # by default every 500 steps
                record = {"loss": round(loss, 4), "learning_rate": 9.1e-05, "epoch": round(step / 9000, 2)}
                yield f"\r{' ' * 60}\r{record}\n".encode()
        if step % 1000 == 0:
            yield f"\n\nsaving checkpoint: out/teapot-step{step:08d}.safetensors\n".encode()


def _bar(step: int, total: int) -> str:
    eighths = step * 80 // total
    drawn = "█" * (eighths // 8) + _BLOCKS[eighths % 8]
    left = total - step
    clock = f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02}"
    return f"{step * 100 // total:3d}%|{drawn:<10}| {step}/{total} [{step // 60:02}:{step % 60:02}<{clock},  1.00s/it"


if __name__ == "__main__":
    sys.exit(main())
