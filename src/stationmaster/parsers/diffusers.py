"""huggingface/diffusers example scripts and others on accelerate: a `Steps` bar, validation that draws pictures."""

from __future__ import annotations

from stationmaster.parsers.base import Parsed, Phase
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory


def read_line(line: Line, memory: Memory) -> Parsed | None:
    text = line.lower
    if text.startswith("running validation..."):  # they validate by drawing
        return Parsed(phase=Phase.SAMPLING, announces=Phase.SAMPLING)
    if text.startswith("resuming from checkpoint"):
        return Parsed(phase=Phase.LOADING)
    return None


FAMILY = Family(
    name="diffusers",
    titles=("accelerate", "dreambooth", "textual-inversion"),
    signs=("accelerate.accelerator", "accelerate.checkpointing", "instantaneous batch size per device"),
    read_line=read_line,
)
