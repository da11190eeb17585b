"""What the loss and its gradients did: nan, divergence, a flat line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from stationmaster.series.table import Table

_WINDOWS = 20
_LEAST_PER_WINDOW = 2
_RECENT = 5
_LOSS_RISE = 2.0
_GRADIENT_RISE = 10.0
_LEAST_NAN_ROWS = 3
_LEAST_FOR_TREND = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    at: float | None
    step: int
    loss: float | None
    gradient_norm: float | None = None
    learning_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The logged losses, by step. `zero_is_nan`: the trainer stores 0 for nan."""

    rows: tuple[LossRow, ...]
    zero_is_nan: bool = False
    every_steps: int = 1

    def _is_nan(self, row: LossRow) -> bool:
        return row.loss is None or (self.zero_is_nan and row.loss == 0.0)

    @property
    def nan_at(self) -> LossRow | None:
        """The first row of the nan losses in which the run ended; None if it ended in real ones."""
        trailing = 0
        for row in reversed(self.rows):
            if not self._is_nan(row):
                break
            trailing += 1
        if trailing < _LEAST_NAN_ROWS * self.every_steps or trailing == len(self.rows):
            return None
        return self.rows[len(self.rows) - trailing]

    def before_nan(self) -> list[LossRow]:
        """Return the rows with real losses before the first nan."""
        found: list[LossRow] = []
        for row in self.rows:
            if self._is_nan(row):
                if found and self.every_steps == 1:
                    break
                continue
            found.append(row)
        return found

    def rose_before_nan(self) -> tuple[float, float] | None:
        """Return how many times their usual height loss and gradient norm had before the nan; None if neither rose."""
        rows = self.before_nan()
        loss = _loss_rise([row.loss for row in rows if row.loss is not None])
        gradient = _gradient_rise([row.gradient_norm for row in rows if row.gradient_norm is not None])
        return (loss, gradient) if loss >= _LOSS_RISE or gradient >= _GRADIENT_RISE else None

    def divergence(self) -> float | None:
        """Return the last window's median loss over the lowest one's, if the run diverged."""
        losses = [row.loss for row in self.rows if row.loss is not None and not self._is_nan(row)]
        if len(losses) < _WINDOWS * _LEAST_PER_WINDOW:
            return None
        medians = [median(part) for part in _equal_parts(losses, _WINDOWS)]
        lowest = min(medians)
        if lowest <= 0 or medians.index(lowest) >= _WINDOWS - 3:
            return None
        ratio = medians[-1] / lowest
        return ratio if ratio >= _LOSS_RISE else None

    def fall(self) -> float | None:
        """Return by what part the median loss of the last third is below that of the first; None for too few rows."""
        losses = [row.loss for row in self.rows if row.loss is not None]
        if len(losses) < _LEAST_FOR_TREND:
            return None
        first, _, last = (median(part) for part in _equal_parts(losses, 3))
        return (first - last) / first if first > 0 else None

    @property
    def highest_rate(self) -> float | None:
        return max((row.learning_rate for row in self.rows if row.learning_rate is not None), default=None)


def losses_of_rows(table: Table | None, *, zero_is_nan: bool, every_steps: int) -> Losses | None:
    """Return the losses in the rows of steps; None where no row has one."""
    if table is None:
        return None
    columns = ("timestamp", "step", "loss", "gradient_norm", "learning_rate")
    rows = tuple(
        LossRow(at=at, step=step, loss=loss, gradient_norm=norm, learning_rate=rate)
        for at, step, loss, norm, rate in table.tuples(*columns)
    )
    if not any(row.loss is not None for row in rows):
        return None
    return Losses(rows=rows, zero_is_nan=zero_is_nan, every_steps=every_steps)


def losses_of_log(losses: Sequence[tuple[int, float | None]], *, zero_is_nan: bool) -> Losses | None:
    """Return the losses that the log's bars show."""
    rows = tuple(LossRow(at=None, step=step, loss=loss) for step, loss in losses)
    return Losses(rows=rows, zero_is_nan=zero_is_nan) if any(row.loss is not None for row in rows) else None


def _loss_rise(values: Sequence[float]) -> float:
    """Return how many times its usual height the loss had at the end; 1 for too few values."""
    if len(values) < 2:
        return 1.0
    if len(values) < 2 * _RECENT:  # one high value of a few proves nothing, unless it towers over all of them
        return values[-1] / max(values[:-1]) if max(values[:-1]) > 0 else 1.0
    earlier = values[:-_RECENT]
    usual = min(median(part) for part in _equal_parts(earlier, min(4, len(earlier))))
    return median(values[-3:]) / usual if usual > 0 else 1.0


def _gradient_rise(values: Sequence[float]) -> float:
    """Return how many times its usual height the gradient norm reached at the end: it may leap in one step."""
    earlier = values[:-_RECENT] or values[:1]
    usual = median(earlier) if earlier else 0.0
    return max(values[-_RECENT:]) / usual if usual > 0 else 1.0


def _equal_parts(values: Sequence[float], count: int) -> list[Sequence[float]]:
    size = len(values) / count
    return [values[round(place * size) : round((place + 1) * size)] for place in range(count)]
