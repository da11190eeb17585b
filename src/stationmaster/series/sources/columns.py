"""Which names of other tools mean the loss, the learning rate and so on, and which are values of their own.

A name is read as in a log (`parsers/names.py`). Several names may mean the same: a file with `loss/current` and
`loss/prior` has one column `loss`, that of the name which stands for the whole, else of the first one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from stationmaster.parsers.names import SMOOTHED_LOSS, meaning_of

_BATCH_SIZE = re.compile(r"^(?:train(?:ing)?/)?batch[ _]?size$")
_MILLISECONDS = re.compile(r"(?:^|[_ (/])ms(?:$|[_ )/])")
_MAIN, _PART = 0, 1


def step_columns(names: Iterable[str]) -> dict[str, str]:
    """The names that fill a column of StepMetric, with that column; all other names are values of their own.

    >>> step_columns(["loss/current", "loss/average", "lr/unet", "lr/textencoder", "eval/loss"])
    {'loss/current': 'loss', 'lr/unet': 'learning_rate'}
    >>> step_columns(["kl_loss", "train/loss", "train/grad_norm", "perf/step_time"])
    {'train/loss': 'loss', 'train/grad_norm': 'gradient_norm', 'perf/step_time': 'step_time_seconds'}
    """
    best: dict[str, tuple[int, str]] = {}
    for name in names:
        found = _column(name)
        if found is not None and (found[0] not in best or found[1] < best[found[0]][0]):
            best[found[0]] = (found[1], name)
    return {name: column for column, (_, name) in best.items()}


def _column(name: str) -> tuple[str, int] | None:
    """The column that a name may fill, and its rank among such names."""
    lower = name.lower()
    means = meaning_of(lower)
    if means.loss is not None and means.loss < SMOOTHED_LOSS:
        return "loss", means.loss
    if means.is_learning_rate or means.is_part_rate:
        return "learning_rate", _MAIN if means.is_learning_rate else _PART
    if means.is_gradient_norm:
        return "gradient_norm", _MAIN
    if _BATCH_SIZE.search(lower):
        return "batch_size", _MAIN
    last = meaning_of(lower.rpartition("/")[2])
    if (means.is_step_time or last.is_step_time) and not _MILLISECONDS.search(lower):
        return "step_time_seconds", _MAIN
    return None
