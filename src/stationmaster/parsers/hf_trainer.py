"""Hugging Face Trainer and its children (trl, unsloth, axolotl, LLaMA-Factory): unnamed bar, values in dicts."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Parsed, Phase
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.plain import read_values
from stationmaster.parsers.values import learning_rate

_DICT = re.compile(r"\{\s*['\"][\w/ ().-]+['\"]\s*:")
_EVALUATION = re.compile(r"['\"](?:eval|test|predict|validation|val)[_/]\w+['\"]\s*:\s*(?!null|none)", re.IGNORECASE)
_VALIDATION_RECORD = re.compile(r"['\"]mode['\"]\s*:\s*['\"](?:val|test|eval)")  # mmcv's JSON log
_RUN_TOTALS = re.compile(r"['\"]train_runtime['\"]")
_METRICS_HEAD = re.compile(r"\*{3,} (?P<what>\w+) metrics \*{3,}")
_METRIC = re.compile(r"(?P<name>[\w-]+) +=\s+(?P<value>\S+)$")


def read_line(line: Line, memory: Memory) -> Parsed | None:
    if "***" in line.message and (found := _METRICS_HEAD.search(line.message)):
        if found["what"] != "train":
            memory.doubt_bar()
        memory.in_metrics = True
        return Parsed(finished=True)
    if memory.in_metrics and (found := _METRIC.match(line.message)):
        return (
            Parsed(epoch=float(found["value"])) if found["name"] == "epoch" and _is_number(found["value"]) else Parsed()
        )
    memory.in_metrics = False
    if line.message.startswith("{") and _DICT.match(line.message):
        return read_dict(line, memory)
    return None


def read_dict(line: Line, memory: Memory) -> Parsed | None:
    """A dict of logged values, as Python or as JSON prints it."""
    if "mode" in line.message and _VALIDATION_RECORD.search(line.message):
        return Parsed(phase=Phase.EVALUATING, learning_rate=learning_rate(line.pairs()))
    parsed = read_values(line, memory, is_record=True)
    if "train_runtime" in line.message and _RUN_TOTALS.search(line.message):  # its loss is the mean of the run
        memory.loss_since_bar = True
        return Parsed(step=parsed.step if parsed else None, epoch=parsed.epoch if parsed else None, finished=True)
    if parsed is not None and _counts_evaluations(parsed, memory):  # mmengine's own file
        return Parsed(phase=Phase.EVALUATING)
    if parsed is not None and (parsed.loss is not None or parsed.step is not None):
        _confirm_bar(memory)
        return parsed
    if _EVALUATION.search(line.message):
        memory.doubt_bar()
        return Parsed(phase=Phase.EVALUATING if not memory.finished else None, epoch=parsed.epoch if parsed else None)
    return parsed


def _counts_evaluations(parsed: Parsed, memory: Memory) -> bool:
    """A record without loss and learning rate whose step went back, after records that had them."""
    has_values = parsed.loss is not None or parsed.learning_rate is not None
    return memory.has_step_loss and not has_values and (parsed.step or 0) < (memory.step or 0)


def _confirm_bar(memory: Memory) -> None:
    """A bar beside which training losses are printed is the training bar, or the next one will be."""
    memory.loss_since_bar = True
    if memory.bar_identity is not None and not memory.bar_was_full:
        memory.bar_confirmed = True


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?", text) is not None


FAMILY = Family(
    name="hf-trainer",
    titles=("transformers", "trl", "unsloth", "axolotl", "llama-factory", "llamafactory", "ms-swift", "swift", "peft"),
    signs=(
        "***** running training *****",
        "'train_runtime':",
        "'learning_rate':",
        "[info|trainer.py",
        "unsloth: ",
        "axolotl.",
        '"current_steps":',
    ),
    read_line=read_line,
)
