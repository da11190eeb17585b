"""Rows whose values are still being computed on the GPU: written once they are there, without waiting for them."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, Callable, Deque, Dict, Mapping, Tuple

Numbers = Dict[str, float]

# The CPU is seldom more than a few steps ahead of the GPU; this bounds the memory if a GPU never answers.
_MOST_ROWS = 256


class Reading:
    """A value that is known already."""

    def __init__(self, number: float | None) -> None:
        self._number = number

    def is_ready(self) -> bool:
        """Return whether `number` returns at once."""
        return True

    def number(self) -> float | None:
        """Return the value; wait for it if it is not ready. None: it is not a number."""
        return self._number


class DeviceReading(Reading):
    """A value on its way from the GPU: copied after the work that computes it, behind the CPU's back."""

    def __init__(self, tensor: Any) -> None:
        torch = sys.modules["torch"]
        device = getattr(torch, tensor.device.type)
        # Only a copy into pinned memory does not wait.
        self._copy = torch.empty((), dtype=tensor.dtype, pin_memory=True)
        with device.device(tensor.device):
            self._copy.copy_(tensor.detach().reshape(()), non_blocking=True)
            self._copied = device.Event()
            self._copied.record()

    def is_ready(self) -> bool:
        return bool(self._copied.query())

    def number(self) -> float | None:
        self._copied.synchronize()
        return float(self._copy)


def start_reading(value: Any) -> Reading:
    """Return a reading of a number, a NumPy number or a tensor with one element; nothing else is a number."""
    if isinstance(value, (bool, int, float)):
        return Reading(float(value))
    try:
        return _start_reading_array(value)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return Reading(None)


def _start_reading_array(value: Any) -> Reading:
    count = value.numel() if hasattr(value, "numel") else value.size
    device = getattr(getattr(value, "device", None), "type", "cpu")
    if count != 1:
        return Reading(None)
    if device in ("cuda", "xpu"):
        return DeviceReading(value)
    # Other accelerators compute a tensor when it is read, which would wait; Apple's shares its memory with the CPU.
    return Reading(float(value.item()) if device in ("cpu", "mps") else None)


class LateRows:
    """Writes rows in their order, each as soon as all its values are there."""

    def __init__(self, read: Callable[[Any], Reading] = start_reading) -> None:
        self._read = read
        self._rows: Deque[Tuple[Callable[[Numbers], None], Dict[str, Reading]]] = deque()

    def add(self, values: Mapping[str, Any], write: Callable[[Numbers], None]) -> None:
        """Call `write` with the values that are numbers, now or when they are ready."""
        self._rows.append((write, {name: self._read(value) for name, value in values.items()}))
        self.write_ready()

    def write_ready(self) -> None:
        """Write the rows whose values are there. Never waits."""
        while self._rows:
            _, readings = self._rows[0]
            if not all(reading.is_ready() for reading in readings.values()) and len(self._rows) <= _MOST_ROWS:
                return
            self._write_first(wait=False)

    def write_all(self) -> None:
        """Write every row; waits for values that are not ready."""
        while self._rows:
            self._write_first(wait=True)

    def _write_first(self, *, wait: bool) -> None:
        write, readings = self._rows.popleft()
        known = {name: each.number() for name, each in readings.items() if wait or each.is_ready()}
        write({name: number for name, number in known.items() if number is not None})
