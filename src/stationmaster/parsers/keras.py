"""Keras and TensorFlow: `Epoch 3/5`, then a counter that starts again with every epoch."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Parsed, Phase, Scope
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import find_pairs
from stationmaster.parsers.quantities import duration_seconds, steps_per_second, whole
from stationmaster.parsers.values import learning_rate, training_loss

_EPOCH = re.compile(r"Epoch (\d+)/(\d+)$")
_COUNTER = re.compile(
    r"(?P<n>\d++)/(?P<m>\d++|Unknown)(?: *\[[=>. -]*+\]| ++[━─╸╺]++| ++(?=\d+s )| - (?=\d+s))(?P<rest>.*)$"
)
_CONTINUED = re.compile(r"-? ?(?:ETA: |\d+s \d+[mu]?s/)")
_ETA = re.compile(r"ETA: ?([\d:]+s?)")
_PACE = re.compile(
    r"(?<![\d:])(?:(?P<time>\d++s|\d++:\d\d(?::\d\d)?) {0,4}-? {0,4})?"
    r"(?P<pace>\d++(?:\.\d++)?(?:us|µs|ms|s)/(?:step|epoch|sample))"
)


def read_line(line: Line, memory: Memory) -> Parsed | None:
    if found := _EPOCH.match(line.message):
        memory.in_epoch = memory.has_epoch_lines = True
        return Parsed(epoch=float(found[1]), total_epochs=int(found[2]), phase=Phase.TRAINING)
    if found := _COUNTER.match(line.message):
        return _read_counter(found, line, memory)
    if memory.in_epoch and _CONTINUED.match(line.message):  # the values below their bar
        eta, rate = _times(line.message, is_full=memory.step is not None and memory.step == memory.total)
        pairs = line.pairs()
        return Parsed(
            loss=training_loss(pairs),
            learning_rate=learning_rate(pairs),
            eta_seconds=eta,
            rate=rate,
            phase=Phase.TRAINING,
            evidence=line.message,
        )
    return None


def _read_counter(found: re.Match[str], line: Line, memory: Memory) -> Parsed:
    step, total, rest = whole(found["n"]), whole(found["m"]), found["rest"]
    pairs = find_pairs(rest)
    is_same = (step, total) == (memory.step, memory.total)
    if not memory.in_epoch and memory.step is not None and not is_same:
        return Parsed(phase=Phase.EVALUATING)
    if not memory.in_epoch and memory.step is None and not pairs:  # a download draws the same bar
        return Parsed(phase=Phase.LOADING if memory.phase == Phase.LOADING else Phase.EVALUATING)
    is_full = step is not None and step == total
    eta, rate = _times(rest, is_full=is_full or total is None)
    memory.in_epoch = not (is_full and rate is not None and eta is None)
    return Parsed(
        step=step,
        total=total,
        scope=Scope.EPOCH,
        loss=training_loss(pairs),
        learning_rate=learning_rate(pairs),
        rate=rate,
        eta_seconds=eta,
        phase=Phase.TRAINING,
        evidence=line.message,
    )


def _times(text: str, *, is_full: bool) -> tuple[float | None, float | None]:
    """Remaining time and steps per second; on a finished line the time printed is the elapsed one."""
    eta = next(iter([*_ETA.finditer(text)][-1:]), None)
    pace = next(iter([*_PACE.finditer(text)][-1:]), None)
    rate = steps_per_second(pace["pace"]) if pace else None
    if eta and (pace is None or pace.start() < eta.start()):
        return duration_seconds(eta[1]), rate
    if pace and pace["time"] and not is_full:
        return duration_seconds(pace["time"]), rate
    return None, rate


FAMILY = Family(
    name="keras",
    epoch_begins=True,
    titles=("tensorflow", "tf", "tf-keras"),
    signs=("━━━━━ ", "ms/step - ", "[=====", "tensorflow/"),
    read_line=read_line,
)
