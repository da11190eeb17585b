"""PyTorch Lightning and NeMo: a bar per epoch, counted from zero."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Parsed
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.quantities import whole

_STOPPED = re.compile(r"`?Trainer\.fit`? stopped: `?(?P<limit>max_\w+)=(?P<value>[\d,]+)`? reached")


def read_line(line: Line, memory: Memory) -> Parsed | None:
    if found := _STOPPED.search(line.message):
        limit = whole(found["value"])
        return Parsed(finished=True, total_epochs=limit if found["limit"] == "max_epochs" else None)
    return None


FAMILY = Family(
    name="lightning",
    titles=("pytorch-lightning", "nemo", "stable-audio"),
    signs=("trainer.fit", "pytorch_lightning", "lightning_logs", "local_rank: 0 - cuda_visible_devices"),
    read_line=read_line,
)
