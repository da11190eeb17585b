"""kohya-ss: sd-scripts, musubi-tuner and what wraps them. Bilingual headers, a `steps` bar, `epoch 3/20` between."""

from __future__ import annotations

import re
from dataclasses import replace

from stationmaster.parsers import stages
from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import Parsed, Phase
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory

# Printed by every dataset and worker; the second number is the epoch that begins.
_INCREMENTED = re.compile(r"epoch is incremented\. current_epoch: \d+, epoch: (\d+)")
_EPOCH = re.compile(r"epoch (\d+)/(\d+)$")
_SKIPPED = re.compile(r"skipping (\d{1,9}) steps / \1\D")
_CACHING = ("caching latents", "checking cache validity", "caching text encoder", "caching t5", "caching clip")


def read_line(line: Line, memory: Memory) -> Parsed | None:
    text = line.lower
    if found := _INCREMENTED.match(text):
        return Parsed(epoch=float(found[1]))
    if found := _EPOCH.match(line.message):  # does not concern the bar, which counts the whole run
        return Parsed(epoch=float(found[1]), total_epochs=int(found[2]), phase=Phase.TRAINING)
    if text in ("model saved.", "model saved"):
        return Parsed(finished=True)
    if text.startswith("running training / "):
        return Parsed(starts_training=True, phase=Phase.TRAINING)
    if found := _SKIPPED.match(text):
        return Parsed(skipped=int(found[1]))
    if text.startswith("override steps"):
        return Parsed()
    if text.startswith("generating sample images at"):
        return Parsed(phase=Phase.SAMPLING, announces=Phase.SAMPLING)
    if text.startswith("loading image sizes"):  # an unnamed bar follows
        return Parsed(phase=Phase.LOADING, announces=Phase.LOADING)
    if text.startswith(_CACHING):
        return Parsed(phase=Phase.CACHING, announces=Phase.CACHING)
    return None


def read_bar(bar: Bar, memory: Memory) -> Parsed | None:
    """After a resume the bar counts only what is left; the header and the file names give the whole."""
    if not memory.skipped:
        return None
    parsed = stages.read_bar(bar, memory) or Parsed()
    if parsed.step is None:
        return parsed
    total = None if parsed.total is None else parsed.total + memory.skipped
    if total is not None and memory.header_total is not None:
        total = min(total, memory.header_total)  # it forgets the whole epochs that it skips
    return replace(parsed, step=parsed.step + memory.skipped, total=total)


FAMILY = Family(
    name="kohya",
    titles=("kohya-sd-scripts", "sd-scripts", "kohya_ss", "musubi-tuner", "musubi", "fluxgym"),
    signs=("学習", "num batches per epoch", "epoch is incremented", "import network module: networks.", "musubi_tuner"),
    epoch_begins=True,
    read_line=read_line,
    read_bar=read_bar,
)
