"""nanoGPT and its children: `iter 100: loss …` is progress, `step 100: train loss …, val loss …` an evaluation."""

from __future__ import annotations

import re
from dataclasses import replace

from stationmaster.parsers.base import Parsed, Phase, Scope
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.plain import read_values
from stationmaster.parsers.values import learning_rate

_EVALUATION = re.compile(r"step \d+: train loss \S+, val loss ")
_NUMBERED = re.compile(r"(\d{1,12}) \| (?=loss \S+ \| lr )")  # llama2.c names its counter no more than this
_RECORD = re.compile(  # the files that llm.c and build-nanogpt write beside their output
    r"(?:s:(?P<s>\d{1,12}) (?P<short>trl|tel|eval):(?P<short_value>\S+)"
    r"|(?P<step>\d{1,12}) (?P<kind>train|val|hella) (?P<value>\d+\.\d+|nan|inf)$)"
)


def read_line(line: Line, memory: Memory) -> Parsed | None:
    if memory.family == FAMILY.name and _EVALUATION.match(line.message):
        return Parsed(phase=Phase.EVALUATING)
    if _NUMBERED.match(line.message):
        parsed = read_values(replace(line, message=f"iter {line.message}"), memory)
        return replace(parsed, evidence=line.message) if parsed else None
    if found := _RECORD.match(line.message):
        return _read_record(found, line)
    return None


def _read_record(found: re.Match[str], line: Line) -> Parsed | None:
    if (found["short"] or found["kind"]) not in ("trl", "train"):
        return Parsed(phase=Phase.EVALUATING)
    try:
        loss = float(found["short_value"] or found["value"])
    except ValueError:
        return None
    return Parsed(
        step=int(found["s"] or found["step"]),
        scope=Scope.RUN,
        loss=loss,
        learning_rate=learning_rate(line.pairs()),
        phase=Phase.TRAINING,
        evidence=line.message,
    )


FAMILY = Family(
    name="nanogpt",
    titles=("lit-gpt",),
    signs=("ms, mfu ", "ms | mfu ", "tokens per iteration will be: "),
    read_line=read_line,
)
