"""Progress printed as a table: fastai, nerfstudio, the Hugging Face notebook."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Parsed, Phase
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.names import is_validation
from stationmaster.parsers.quantities import duration_seconds, per_second, whole

_GAP = re.compile(r"\t+ *| {2,}| *\| *")
_COMMA = re.compile(r" *, *")
_SENTENCE = re.compile(r"[:=|\t]|  |[A-Za-z]\w* [A-Za-z]")
_COUNTER_COLUMN = re.compile(r"(?:step|epoch|iter(?:ation)?)s?(?: \(% done\))?$")
_VALUE_COLUMN = re.compile(r"loss|train iter|learning rate")
_LEADING_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_RATE_COLUMNS = frozenset({"lr", "learning rate", "learning_rate"})
_MAX_COLUMNS = 16


def read_line(line: Line, memory: Memory) -> Parsed | None:
    gap = _COMMA if _is_comma_separated(line.message) else _GAP
    cells = [cell for cell in gap.split(line.message.strip(" |")) if cell]
    if not 2 <= len(cells) <= _MAX_COLUMNS:
        return None
    if _is_header(cells):
        memory.columns = [cell.lower() for cell in cells]
        return Parsed(phase=Phase.TRAINING)
    if memory.columns and len(cells) == len(memory.columns) and _LEADING_NUMBER.match(cells[0]):
        return _read_row(dict(zip(memory.columns, cells, strict=True)), memory)
    return None


def _is_comma_separated(text: str) -> bool:
    """Whether the line may be of a CSV file: commas, and nothing that begins a sentence after them."""
    return "," in text and not _SENTENCE.search(text)


def _is_header(cells: list[str]) -> bool:
    """Words only: a counter first, a value somewhere after it."""
    names = [cell.lower() for cell in cells]
    if any(_LEADING_NUMBER.match(cell) for cell in cells) or not _COUNTER_COLUMN.match(names[0]):
        return False
    return any(_VALUE_COLUMN.search(name) for name in names[1:])


def _read_row(row: dict[str, str], memory: Memory) -> Parsed:
    step = epoch = loss = rate = eta = learning_rate = None
    for name, cell in row.items():
        number = _LEADING_NUMBER.match(cell)
        if name.startswith("epoch") and number:
            epoch = float(number[0].replace(",", ""))
        elif _COUNTER_COLUMN.match(name) and number:
            step = whole(number[0])
        elif (name == "loss" or ("loss" in name and "train" in name)) and not is_validation(name) and number:
            loss = float(number[0].replace(",", ""))
        elif name in _RATE_COLUMNS and number:
            learning_rate = float(number[0].replace(",", ""))
        elif name.startswith("train iter") and (seconds := duration_seconds(cell)):
            rate = per_second(seconds)
        elif name.startswith("eta"):
            eta = duration_seconds(cell)
    if step is not None and memory.total is not None and step <= (memory.step or 0):
        step = None  # a notebook draws its bar above the table: the bar is further
    return Parsed(
        step=step,
        epoch=epoch,
        loss=loss,
        loss_is_epoch_mean=epoch is not None and step is None,
        learning_rate=learning_rate,
        rate=rate,
        eta_seconds=eta,
        phase=Phase.TRAINING,
    )


FAMILY = Family(name="tables", titles=("fastai", "nerfstudio"), signs=("step (% done)",), read_line=read_line)
