"""torchtune: a bar per epoch whose description is `epoch|global step|Loss: value`."""

from __future__ import annotations

import re
from dataclasses import replace

from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import Parsed, Scope
from stationmaster.parsers.family import Family
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import find_pairs
from stationmaster.parsers.stages import read_training_bar
from stationmaster.parsers.values import values_of

_DESCRIPTION = re.compile(r"(\d+)\|\d+\|Loss: \S+$")


def read_bar(bar: Bar, memory: Memory) -> Parsed | None:
    found = _DESCRIPTION.search(bar.description)
    is_first = memory.family == FAMILY.name and not bar.description and bar.step == 0  # it gets its name with a loss
    if not found and not is_first:
        return None
    memory.follow_bar(bar.identity, bar.total, confirmed=True)
    parsed = read_training_bar(bar, values_of(find_pairs(bar.description)), memory)
    return replace(parsed, scope=Scope.EPOCH, epoch=float(found[1]) if found else None, finished=False)


FAMILY = Family(
    name="torchtune", signs=("torchtune", "local seed is seed + rank"), epoch_begins=True, read_bar=read_bar
)
