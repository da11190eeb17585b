"""From printed counters to one position that only falls when steps are really repeated."""

from __future__ import annotations

from dataclasses import dataclass, field

from stationmaster.saved_state import NOT_STORED
from stationmaster.watch.log_moment import LogMoment

_FINISHED_PART = 0.98
_NEARLY = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far the run is, in steps (or epochs where no step is ever printed)."""

    value: float
    total: float | None
    counts_steps: bool = True
    is_new_unit: bool = False  # earlier positions were counted in something else


@dataclass(slots=True)
class Counter:
    """Understands resumed, staged and per-epoch counters.

    A counter that falls back under the same total repeats steps. One that restarts under another total, or after
    its end, is a further stage (or epoch). kohya shows only the remaining steps after a resume: a smaller total.
    """

    asked_total: float | None = field(default=None, metadata=NOT_STORED)
    _unit: str | None = None
    _base: float = 0.0
    _printed: float | None = None
    _printed_total: float | None = None
    _epoch: int | None = None
    _from_zero: bool = False  # epochs are counted from zero
    _total_epochs: float | None = None
    _header_total: float | None = None
    _spans_run: bool = False

    def read(self, moment: LogMoment) -> Position | None:
        """The position at `moment`; None if the moment has no counter."""
        if moment.total_epochs is not None:
            self._total_epochs = moment.total_epochs
        if moment.step is not None:
            return self._read_step(moment, moment.step)
        if moment.total is not None and self._unit != "step":
            self._header_total = moment.total
        if moment.epoch is not None and self._unit != "step":
            return self._read_epoch(moment.epoch)
        return None

    def _use_unit(self, unit: str) -> bool:
        changed = self._unit is not None and self._unit != unit
        self._unit = unit
        return changed

    def _read_epoch(self, epoch: float) -> Position:
        """A position from epochs alone, in steps where both totals are known."""
        total = self._header_total or self.asked_total
        if total is None or not self._total_epochs:
            is_new_unit = self._use_unit("epoch")
            return Position(value=epoch, total=self._total_epochs, counts_steps=False, is_new_unit=is_new_unit)
        is_new_unit = self._use_unit("part")
        return Position(value=epoch / self._total_epochs * total, total=total, is_new_unit=is_new_unit)

    def _read_step(self, moment: LogMoment, step: float) -> Position:
        is_new_unit = self._use_unit("step")
        by_epoch = moment.scope == "epoch" and not self._proves_to_span_run(moment, step)
        if by_epoch:
            self._turn_epoch(moment, step)
        else:
            self._turn_stage(moment, step)
        self._printed = step
        self._printed_total = moment.total or self._printed_total
        total = self._total(step, by_epoch=by_epoch)
        return Position(value=self._base + step, total=total, is_new_unit=is_new_unit)

    def _proves_to_span_run(self, moment: LogMoment, step: float) -> bool:
        """Whether a counter printed beside an epoch goes on across epochs nevertheless."""
        if moment.total is not None and moment.total == self.asked_total:
            self._spans_run = True
        epochs = int(moment.epoch) - self._epoch if moment.epoch is not None and self._epoch is not None else 0
        if epochs == 1 and self._printed is not None and self._printed_total is not None:
            in_mid_epoch = self._printed < _NEARLY * self._printed_total
            goes_on = 0 <= step - self._printed < (1 - _NEARLY) * self._printed_total
            self._spans_run = (in_mid_epoch and goes_on) or (self._spans_run and step >= self._printed)
        if self._spans_run and moment.epoch is not None:
            self._epoch = int(moment.epoch)
        return self._spans_run

    def _turn_epoch(self, moment: LogMoment, step: float) -> None:
        per_epoch = self._printed_total or self._printed or 0.0
        if moment.epoch is None:
            if self._printed is not None and step < self._printed and self._has_finished():
                self._base += per_epoch
            return
        epoch = int(moment.epoch)
        if self._epoch is None:
            self._from_zero = epoch == 0
        else:
            self._base = max(0.0, self._base + (epoch - self._epoch) * per_epoch)
        self._epoch = epoch

    def _turn_stage(self, moment: LogMoment, step: float) -> None:
        printed, before, total = self._printed, self._printed_total, moment.total
        if printed is None or step >= printed:
            return
        if self._has_finished():
            self._base += printed
        elif before is not None and total is not None and total < before - 1:
            self._base += before - total

    def _has_finished(self) -> bool:
        if self._printed is None or self._printed_total is None:
            return False
        return self._printed >= min(self._printed_total - 1, self._printed_total * _FINISHED_PART)

    def _total(self, step: float, *, by_epoch: bool) -> float | None:
        per_count = self._printed_total
        if not by_epoch:
            total = self._base + per_count if per_count else self.asked_total
            return total if total and total >= self._base + step else None
        if per_count is None or self._total_epochs is None or self._epoch is None:
            return self.asked_total if self.asked_total and self.asked_total >= self._base + step else None
        last_epoch = self._total_epochs - 1 if self._from_zero else self._total_epochs
        return self._base + per_count * (1 + max(0.0, last_epoch - self._epoch))
