"""How much memory another setting would need, by what this run used."""

from __future__ import annotations

import math
from typing import Any

from stationmaster.analysis.configs.ai_toolkit import resolutions

MOST_SHARE = 0.90
CAREFUL_SHARE = 0.88
"""What is aimed at: a little below the most, because no two runs are alike."""
CARD_SIZES_GB = (12, 16, 24, 32, 48, 80, 96, 141, 180)
_STEP = 64
_SMALLEST = 256


def needed_for_batch(count: int, *, base_gb: float, need_gb: float, batch: int) -> float:
    """Return the memory for a batch of `count`, where `batch` needs `need_gb` over a base.

    >>> needed_for_batch(2, base_gb=8, need_gb=24, batch=4)
    16.0
    """
    return base_gb + count * (need_gb - base_gb) / batch


def fitting_batch(*, size_gb: float, base_gb: float, need_gb: float, batch: int) -> int:
    """Return the largest batch that is predicted to fit; at least 1.

    >>> fitting_batch(size_gb=24, base_gb=8, need_gb=24, batch=4)
    3
    """
    per_item = max(need_gb - base_gb, 0.0) / batch
    if per_item <= 0:
        return batch
    return max(1, math.floor((size_gb * CAREFUL_SHARE - base_gb) / per_item + 1e-9))


def smaller_resolution(value: Any, *, size_gb: float, base_gb: float, need_gb: float) -> Any:
    """Return the resolution that is predicted to fit, in the form of `value`; None if there is no smaller one.

    Memory above the base grows with the area.
    """
    largest = max(resolutions(value))

    def fits(side: float) -> bool:
        return base_gb + (need_gb - base_gb) * (side / largest) ** 2 <= size_gb * CAREFUL_SHARE

    if isinstance(value, list) and len({*resolutions(value)}) > 1:
        lower = sorted({size for size in resolutions(value) if size < largest}, reverse=True)
        best = next((size for size in lower if fits(size)), lower[-1])
        return [_whole(size) for size in sorted(size for size in resolutions(value) if size <= best)]
    sides = [side for side in range(_SMALLEST, math.ceil(largest), _STEP) if side < largest]
    if not sides or largest <= 512:
        return None
    side = next((side for side in reversed(sides) if fits(side) and side >= 512), 512)
    if isinstance(value, str) and "," in value:
        return ",".join(str(_scaled(size, side / largest)) for size in resolutions(value))
    if isinstance(value, list):
        return [side]
    return str(side) if isinstance(value, str) else side


def smaller_side(side: float, *, factor: float) -> int | None:
    """Return a side whose picture has at most `factor` of the area, in steps of 64; None below 256."""
    found = math.floor(side * math.sqrt(max(0.0, factor)) / _STEP) * _STEP
    return found if found >= _SMALLEST else None


def larger_card(need_gb: float, *, size_gb: float) -> int | None:
    """Return the smallest usual card that is larger and that the need fills to at most 0.90."""
    bigger = [size for size in CARD_SIZES_GB if size > size_gb * 1.05]
    return next((size for size in bigger if need_gb <= size * MOST_SHARE), bigger[-1] if bigger else None)


def larger_memory(need_gb: float, *, size_gb: float) -> int:
    """Return a size of system memory that the need fills to about three quarters."""
    unit = 8 if size_gb >= 8 else 1
    return max(math.ceil(need_gb / 0.75 / unit) * unit, math.ceil(size_gb * 1.25 / unit) * unit)


def _whole(size: float) -> int | float:
    return int(size) if float(size).is_integer() else size


def _scaled(size: float, factor: float) -> int:
    return max(_SMALLEST, math.floor(size * factor / _STEP) * _STEP)
