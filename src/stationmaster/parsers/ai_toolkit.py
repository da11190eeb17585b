"""ostris/ai-toolkit: a bar named after the job, plain lines around it, a result block at the end."""

from __future__ import annotations

import re

from stationmaster.parsers import stages
from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import ErrorKind, Fault, Parsed, Phase
from stationmaster.parsers.error_kinds import kind_of
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory

_PHASES: tuple[tuple[tuple[str, ...], Phase], ...] = (
    (
        ("quantizing", "making pipe", "preparing model", "model loaded", "create lora network", "dataset:"),
        Phase.LOADING,
    ),
    (("caching latents", "caching text", "caching clip", "generating controls"), Phase.CACHING),
    (("generating first sample", "generating baseline samples", "generating samples"), Phase.SAMPLING),
    (("saving at step",), Phase.SAVING),
)
_RUNNING = re.compile(r"running \d+ jobs?$")
_COMPLETED = re.compile(r"(?:- )?(\d+) completed jobs?$")
_FAILURES = re.compile(r"(?:- )?[1-9]\d* failures?$")
_SKIPPED = re.compile(r"#? ?OOM during training step, skipping batch", re.IGNORECASE)


def read_line(line: Line, memory: Memory) -> Parsed | None:
    text = line.lower
    if text.startswith("error running job:"):
        cause = line.message.partition(":")[2].strip()
        return Parsed(fault=Fault(kind=kind_of(cause), message=cause, fatal=True))
    if text.startswith("error running on_error"):  # the handler of an error that is known already
        return Parsed()
    if "oom during" in text and _SKIPPED.search(line.message):
        return Parsed(fault=Fault(kind=ErrorKind.OOM, message=line.message.strip("# "), fatal=False))
    if text == "loss is nan":
        return Parsed(fault=Fault(kind=ErrorKind.NAN_LOSS, message=line.message, fatal=False))
    if found := _COMPLETED.match(text):
        return Parsed(finished=found[1] != "0")
    if _FAILURES.match(text):
        return Parsed(fault=Fault(kind=ErrorKind.OTHER, message=line.message, fatal=True, launcher=True))
    if _RUNNING.match(text):
        return Parsed(phase=Phase.LOADING, starts_training=True)
    for starts, phase in _PHASES:
        if text.startswith(starts):
            return Parsed(phase=phase, announces=phase if phase == Phase.CACHING else None)
    return None


def read_bar(bar: Bar, memory: Memory) -> Parsed | None:
    """The training bar carries the job's name; one without a name counts images, buckets or blocks."""
    if memory.family != FAMILY.name or memory.bar_identity is not None:
        return None
    if not bar.description:
        return Parsed(phase=Phase.LOADING) if not bar.postfix else None
    if memory.announced == Phase.CACHING and not stages.names_stage(bar.description):
        memory.announced = None  # it is the job's: its values come with the first step
    return None


FAMILY = Family(
    name="ai-toolkit",
    titles=("ai_toolkit", "aitoolkit", "ostris"),
    signs=(
        "create lora network. base dim",
        "running 1 job",
        "generating baseline samples before training",
        "saving at step ",
        "preprocessing image dimensions",
        "preprocessing video dimensions",
        "#### important resuming from ",
        " transformer blocks",
    ),
    read_line=read_line,
    read_bar=read_bar,
)
