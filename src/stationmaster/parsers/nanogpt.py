"""nanoGPT and its children: `iter 100: loss …` is progress, `step 100: train loss …, val loss …` an evaluation."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Parsed, Phase
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory

_EVALUATION = re.compile(r"step \d+: train loss \S+, val loss ")


def read_line(line: Line, memory: Memory) -> Parsed | None:
    return Parsed(phase=Phase.EVALUATING) if _EVALUATION.match(line.message) else None


FAMILY = Family(name="nanogpt", titles=("lit-gpt",), signs=("ms, mfu ",), read_line=read_line)
