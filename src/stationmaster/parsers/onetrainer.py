"""OneTrainer, with a `step` bar that starts again inside an `epoch` bar, and SimpleTuner."""

from __future__ import annotations

import re
from dataclasses import replace

from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import Parsed, Phase, Scope
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import find_pairs
from stationmaster.parsers.stages import read_training_bar
from stationmaster.parsers.values import values_of

_FINAL = re.compile(r"-> global_step = (?P<step>\d+), max_train_steps = (?P<total>\d+)")


def read_bar(bar: Bar, memory: Memory) -> Parsed | None:
    if bar.description != "step":
        return None
    memory.follow_bar(bar.identity, bar.total, confirmed=True)
    parsed = read_training_bar(bar, values_of(find_pairs(bar.postfix)), memory)
    return replace(parsed, scope=Scope.EPOCH, finished=False)


def read_line(line: Line, memory: Memory) -> Parsed | None:
    if _FINAL.search(line.message):  # SimpleTuner repeats its counters at the end
        return Parsed()
    if line.lower.startswith("training loss became nan"):
        return None
    if line.lower.startswith("clearing cache directory"):
        return Parsed(phase=Phase.LOADING)
    return None


FAMILY = Family(
    name="onetrainer",
    titles=("simpletuner",),
    signs=("onetrainer", "simpletuner", "enumerating sample paths", "smooth loss="),
    read_line=read_line,
    read_bar=read_bar,
)
