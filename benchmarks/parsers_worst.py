"""Speed of reading a log that was made to be slow to read, through all that a status passes on its way.

Lines that cannot carry anything are passed over at the speed of a search, and of many different bars only some are
read: of these shapes the slowest has a budget. Lines that look like something are read one by one; there the budget is
the time of one visit with a full status, of which only so many lines are read.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _jobs import job_spec, small_dataset
from _report import print_figure, report
from stationmaster.control.states.executing.log_watch import read_log
from stationmaster.model import Job, State
from stationmaster.remote.status import LogPiece, Status, StepStatus
from stationmaster.settings import MonitoringSettings

BUDGET_MB_PER_SECOND = 10.0
BUDGET_VISIT_SECONDS = 3.0
STATUS_BYTES = 2**20
REPEATS = 3  # the best counts: the machine may be busy
_CHANCE = random.Random("worst")
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"


def main() -> int:
    carrying_nothing = {name: _speed(shape) for name, shape in NOTHING.items()}
    for name, speed in carrying_nothing.items():
        print_figure(f"parsers: a log of {name}", speed, "MB/s")
    slowest = min(carrying_nothing.values())
    report("parsers: the slowest log that carries nothing", slowest, "MB/s", at_least=BUDGET_MB_PER_SECOND)
    carrying_much = {name: STATUS_BYTES / 1e6 / _speed(shape) for name, shape in MUCH.items()}
    for name, seconds in carrying_much.items():
        print_figure(f"parsers: a visit to a log of {name}", seconds, "s")
    longest = max(carrying_much.values())
    report("parsers: the longest visit to a dense log", longest, "s", at_most=BUDGET_VISIT_SECONDS)
    return 0


def _speed(shape: Callable[[], bytes]) -> float:
    """Megabytes a second of a status that is full of it."""
    text = _filled(shape)
    return max(_once(text) for _ in range(REPEATS))


def _once(text: bytes) -> float:
    job, status = _job(), _status(text)
    started = time.process_time()
    read_log(job, status, framework="auto", monitoring=MonitoringSettings(), now=1000.0)
    return len(text) / 1e6 / (time.process_time() - started)


def _job() -> Job:
    with tempfile.TemporaryDirectory() as folder:
        spec = job_spec(1, small_dataset(Path(folder)), steps=100_000)
    return Job(spec=spec, created_at=0.0, state=State.EXECUTING, state_since=0.0, attempt=1)


def _status(text: bytes) -> Status:
    train = StepStatus(index=0, name="train", state="running", training=True, try_number=1, started_at=0.0)
    piece = LogPiece(stream="0.1", inode=1, start=0, end=len(text), data=text)
    return Status(
        wall=9.0,
        monotonic=9.0,
        boot_id="b",
        started=True,
        steps=(train,),
        log=(piece,),
        training_alive=True,
        more=True,
    )


def _filled(shape: Callable[[], bytes]) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size < STATUS_BYTES:
        parts.append(shape())
        size += len(parts[-1])
    return b"".join(parts)[:STATUS_BYTES]


def _many(unit: bytes) -> Callable[[], bytes]:
    return lambda: unit * (STATUS_BYTES // len(unit) + 1)


def _bar(end: str) -> Callable[[], bytes]:
    def drawn() -> bytes:
        name, total = bytes(_CHANCE.choices(_LETTERS, k=6)).decode(), _CHANCE.randint(100, 9999)
        step = _CHANCE.randint(1, total - 1)
        bar = f"{name}: {step * 100 // total:3d}%|###       | {step}/{total} [00:10<02:30,  1.00it/s, loss=0.5]{end}"
        return bar.encode()

    return drawn


def _letters(length: int) -> Callable[[], bytes]:
    return lambda: bytes(_CHANCE.choices(b"qwyzkhj", k=length)) + b"\n"


NOTHING: dict[str, Callable[[], bytes]] = {
    "lines of two bytes": _many(b"y\n"),
    "different short lines": _letters(4),
    "different lines": _letters(60),
    "blank lines": _many(b"\n"),
    "spaces": _many(b"   \n"),
    "redraws of nothing": _many(b"y\r"),
    "one endless line": _many(b"y"),
    "long lines": _letters(50_000),
    "different bars, redrawn": _bar("\r"),
    "different bars on lines": _bar("\n"),
    "percentages": _many(b"5% \n"),
    "digits": lambda: b"%d\n" % _CHANCE.randrange(10**9),
    "points": _many(b".....\n"),
    "colours": _many(b"\x1b[31m\x1b[0m\n"),
    "control characters": _many(b"\x01\n"),
    "binary": lambda: _CHANCE.randbytes(65_536),
    "letters of other scripts": _many("\u0416\u3042 \u00e9\n".encode()),
}
MUCH: dict[str, Callable[[], bytes]] = {
    "losses": _many(b"loss: 1\n"),
    "counters": _many(b"i=1/2\n"),
    "records": _many(b"{'loss': 1, 'learning_rate': 2, 'epoch': 3}\n"),
    "tracebacks": _many(b"Traceback (most recent call last):\n"),
    "lines in a traceback": _many(b"Traceback (most recent call last):\n" + b"  y\n" * 100_000),
    "errors": _many(b"Error: 1\n"),
    "checkpoints": lambda: b"saved model to out/%d.pt\n" % _CHANCE.randrange(10**9),
    "long lines of losses": _many(b"loss: 1 " * 4_000 + b"\n"),
}

if __name__ == "__main__":
    sys.exit(main())
