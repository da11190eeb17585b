"""torchtune: a bar per epoch whose description is `epoch|global step|Loss: value`."""

from __future__ import annotations

import re
from dataclasses import replace

from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import Parsed, Phase, Scope
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import find_pairs
from stationmaster.parsers.quantities import duration_seconds
from stationmaster.parsers.stages import read_training_bar
from stationmaster.parsers.values import values_of

# The loss comes with the first step.
_DESCRIPTION = re.compile(r"(?P<epoch>\d+)\|\d+\|Loss: \S+$|^(?P<begun>\d+)\|\d+$")
_BARE = re.compile(r"(?P<epoch>\d+)\|(?P<step>\d+)\|Loss: *(?P<loss>[-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))(?![\w.])")
_TIME_LEFT = re.compile(r"\[[\d:]+<([\d:]+)\]")


def read_line(line: Line, memory: Memory) -> Parsed | None:
    """The description without its bar, as it is left where bars are not kept."""
    if "|loss:" not in line.lower:
        return None
    found = next(reversed([*_BARE.finditer(line.message)]), None)
    if found is None:
        return None
    left = _TIME_LEFT.search(line.message, found.end())
    return Parsed(
        step=int(found["step"]),
        scope=Scope.RUN,
        epoch=float(found["epoch"]),
        loss=float(found["loss"]),
        eta_seconds=duration_seconds(left[1]) if left else None,
        phase=Phase.TRAINING,
        evidence=line.message,
    )


def read_bar(bar: Bar, memory: Memory) -> Parsed | None:
    found = _DESCRIPTION.search(bar.description)
    is_first = memory.family == FAMILY.name and not bar.description and bar.step == 0
    if not found and not is_first:
        return None
    memory.follow_bar(bar.identity, bar.total, confirmed=True)
    parsed = read_training_bar(bar, values_of(find_pairs(bar.description)), memory)
    epoch = float(found["epoch"] or found["begun"]) if found else None
    return replace(parsed, scope=Scope.EPOCH, epoch=epoch, finished=False)


FAMILY = Family(
    name="torchtune",
    signs=("torchtune", "local seed is seed + rank"),
    epoch_begins=True,
    read_line=read_line,
    read_bar=read_bar,
)
