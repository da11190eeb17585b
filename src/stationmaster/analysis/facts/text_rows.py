"""How long the rows of a text dataset are, as a training of a language model measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from stationmaster.series.table import Table

_TOTAL = "num_tokens"  # of all steps so far, as TRL's trainers log it
_LEAST_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRows:
    """The usual row of a batch: its tokens, and how many it could have."""

    tokens: float
    context: int

    @property
    def fill(self) -> float:
        return min(1.0, self.tokens / self.context)


def text_rows_of(tables: Mapping[str, Table], *, context: float | None, batch_size: int | None) -> TextRows | None:
    """Return the usual row; None unless tokens, context and batch size were recorded over ten steps or more."""
    values = tables.get("StepValue")
    if values is None or not context or not batch_size:
        return None
    rows = values.tuples("timestamp", "step", "name", "value")
    totals = sorted((at, step, total) for at, step, name, total in rows if name == _TOTAL and total is not None)
    tokens = steps = 0.0
    for (_, before, less), (_, after, more) in pairwise(totals):
        if after > before and more > less:  # after a resume both may begin anew
            tokens += more - less
            steps += after - before
    if steps < _LEAST_STEPS:
        return None
    return TextRows(tokens=tokens / steps / batch_size, context=int(context))
