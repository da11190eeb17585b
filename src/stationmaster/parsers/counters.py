"""The step and the epoch among the pairs of a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stationmaster.parsers.base import Scope
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.names import BATCH_COUNTER
from stationmaster.parsers.pairs import Pair

_TOTAL_NAMES = ("total_steps", "max_steps", "total_iters", "max_iters")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCounter:
    """The counters in a line: how far the training is."""

    step: int | None
    total: int | None
    epoch: float | None = None
    total_epochs: int | None = None
    is_global: bool = False
    is_batch: bool = False  # called so: batches are counted within an epoch
    epoch_first: bool = False  # "Epoch 2 … step 3/10" nests the step, "step 3/10 … epoch 2" only mentions the epoch

    def scope(self, memory: Memory) -> Scope:
        """A counter with a total beside an epoch starts again with every epoch, unless it is called global."""
        if self.is_global or (self.total is None and not (self.is_batch and self.epoch is not None)):
            return Scope.RUN
        nested = self.epoch_first if self.epoch is not None else memory.has_epoch_lines or self.is_batch
        return Scope.EPOCH if nested else Scope.RUN


def find_counter(pairs: Sequence[Pair]) -> PrintedCounter:
    """The counters of a line, the best of several."""
    best: Pair | None = None
    epoch: Pair | None = None
    has_loss = any(pair.means.loss is not None for pair in pairs)
    for pair in pairs:
        if pair.means.step is None or not pair.whole or pair.unit or (pair.name == "i" and pair.of is None):
            pass
        elif best is None or _rank(pair) < _rank(best):
            best = pair
        if pair.means.is_epoch and math.isfinite(pair.value) and (epoch is None or epoch.name != "epoch" == pair.name):
            is_setting = pair.name.endswith("epochs") and pair.of is None and not has_loss
            epoch = epoch if is_setting else pair
    return PrintedCounter(
        step=int(best.value) if best else None,
        total=_total(best, pairs) if best else None,
        epoch=epoch.value if epoch else None,
        total_epochs=epoch.of if epoch else None,
        is_global=best is not None and ("global" in best.name or "current" in best.name),
        is_batch=best is not None and best.means.step == BATCH_COUNTER,
        epoch_first=epoch is not None and best is not None and pairs.index(epoch) < pairs.index(best),
    )


def _rank(pair: Pair) -> int:
    rank = pair.means.step or 0
    return 1 if rank == BATCH_COUNTER and pair.of is not None else rank


def _total(best: Pair, pairs: Sequence[Pair]) -> int | None:
    if best.of is not None:
        return best.of
    return next((int(pair.value) for pair in pairs if pair.whole and pair.name.endswith(_TOTAL_NAMES)), None)
