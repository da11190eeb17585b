"""Peak GPU memory of a training by phase, and the seconds of its steps, written to a JSON file as it goes."""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

GIB = 2**30
POLL_SECONDS = 0.05
WRITE_SECONDS = 2.0


@dataclass
class Peak:
    """A phase's peak memory and its length."""

    allocated_gib: float = 0.0
    reserved_gib: float = 0.0
    device_gib: float = 0.0
    seconds: float = 0.0

    def raise_to(self, *, allocated: float, reserved: float) -> None:
        self.allocated_gib = max(self.allocated_gib, round(allocated / GIB, 3))
        self.reserved_gib = max(self.reserved_gib, round(reserved / GIB, 3))


@dataclass
class Step:
    size: str
    seconds: float
    allocated_gib: float
    reserved_gib: float


@dataclass
class Report:
    """Everything that a watched process found."""

    phases: dict[str, Peak] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    out_of_memory: list[str] = field(default_factory=list)
    limit_gib: float | None = None
    context_gib: float = 0.0
    card: str = ""
    finished: bool = False

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "peak": asdict(self._peak()), "step_seconds": self._step_seconds()}

    def _peak(self) -> Peak:
        found = self.phases.values()
        return Peak(
            allocated_gib=max((one.allocated_gib for one in found), default=0.0),
            reserved_gib=max((one.reserved_gib for one in found), default=0.0),
            device_gib=max((one.device_gib for one in found), default=0.0),
            seconds=round(sum(one.seconds for one in found), 1),
        )

    def _step_seconds(self) -> dict[str, dict[str, float]]:
        """By size of picture; without the first step, which compiles, if there are others."""
        sizes: dict[str, list[Step]] = {}
        for index, step in enumerate(self.steps):
            sizes.setdefault(step.size, [])
            if index > 0:
                sizes[step.size].append(step)
        return {
            size: {
                "count": len(steps),
                "median": round(statistics.median(step.seconds for step in steps), 3),
                "allocated_gib": max(step.allocated_gib for step in steps),
                "reserved_gib": max(step.reserved_gib for step in steps),
            }
            for size, steps in sizes.items()
            if steps
        }


class Watch:
    """Follows the phases of one training process. Nothing is measured before `begin`."""

    def __init__(self, report: Path, *, limit_gib: float | None) -> None:
        self._file = report
        self._limit_gib = limit_gib
        self._report = Report(limit_gib=limit_gib)
        self._phase = "start"
        self._since = time.monotonic()
        self._step: tuple[str, float] | None = None
        self._torch: Any = None
        self._lock = threading.RLock()

    def begin(self, phase: str) -> None:
        """Apply the limit and start to measure; a second call only changes the phase."""
        if self._torch is None:
            import torch  # type: ignore[import-not-found, unused-ignore]

            self._torch = torch
            if self._on_gpu():
                # On a Hopper card it is chosen first, and with PyTorch 2.11 its backward pass read outside its memory
                # at some sizes.
                torch.backends.cuda.enable_cudnn_sdp(False)
                self._apply_limit()
                self._report.card = torch.cuda.get_device_name()
            threading.Thread(target=self._poll, daemon=True, name="gpu-watch").start()
        self.phase(phase)

    @property
    def now(self) -> str:
        """The current phase."""
        return self._phase

    def phase(self, name: str) -> None:
        """From here on, memory counts for the phase `name`."""
        _tell(f"phase: {name}")
        self._change(name)

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Memory in this block counts for the phase `name`, afterwards for the one before."""
        before, began = self._phase, time.monotonic()
        self.step_ends()
        self._change(name)
        try:
            yield
        except BaseException as error:
            self.out_of_memory_if(error)
            raise
        finally:
            self._change(before)
            seconds = time.monotonic() - began
            if seconds > 0.5:  # kohya looks after every step whether samples are due
                _tell(f"{name}: {seconds:.1f} s, {self._report.phases[name].reserved_gib} GiB reserved")

    def step_begins(self, size: str) -> None:
        """A training step on a picture of `size` begins; the one before ends."""
        self.step_ends()
        with self._lock:
            self._close()
            self._synchronize()
            self._step = (size, time.monotonic())

    def step_ends(self) -> None:
        if self._step is None:
            return
        self._synchronize()
        size, began = self._step
        self._step = None
        allocated, reserved = self._peaks()
        seconds = time.monotonic() - began
        step = Step(size, round(seconds, 3), round(allocated / GIB, 3), round(reserved / GIB, 3))
        self._report.steps.append(step)
        with self._lock:
            self._close()
        _tell(
            f"step {len(self._report.steps)}: {size}, {step.seconds} s,"
            f" {step.allocated_gib} GiB allocated, {step.reserved_gib} GiB reserved"
        )

    def out_of_memory_if(self, error: BaseException) -> None:
        """Record that memory ran out; some trainers skip the step and continue."""
        if "out of memory" in str(error).lower():
            first = str(error).splitlines()[0][:500]
            self._report.out_of_memory.append(f"{self._phase}: {first}")
            _tell(f"out of memory in phase {self._phase}: {first}")

    def finish(self, *, well: bool) -> None:
        self.step_ends()
        with self._lock:
            self._close()
        self._report.finished = well
        self._write()

    def _change(self, name: str) -> None:
        with self._lock:
            self._close()
            self._phase = name

    def _on_gpu(self) -> bool:
        return bool(self._torch is not None and self._torch.cuda.is_available())

    def _apply_limit(self) -> None:
        cuda = self._torch.cuda
        cuda.init()
        free, total = cuda.mem_get_info()
        self._report.context_gib = round((total - free) / GIB, 3)
        if self._limit_gib is not None:
            cuda.set_per_process_memory_fraction(min(1.0, self._limit_gib * GIB / total))
            _tell(f"limit: {self._limit_gib} GiB of {total / GIB:.1f} GiB for PyTorch")

    def _synchronize(self) -> None:
        if self._on_gpu():
            self._torch.cuda.synchronize()

    def _peaks(self) -> tuple[float, float]:
        if not self._on_gpu():
            return 0.0, 0.0
        return self._torch.cuda.max_memory_allocated(), self._torch.cuda.max_memory_reserved()

    def _close(self) -> None:
        """Count the peak since the last change for the phase that ends."""
        allocated, reserved = self._peaks()
        now = time.monotonic()
        peak = self._report.phases.setdefault(self._phase, Peak())
        peak.raise_to(allocated=allocated, reserved=reserved)
        peak.seconds = round(peak.seconds + now - self._since, 2)
        self._since = now
        if self._on_gpu():
            self._torch.cuda.reset_peak_memory_stats()

    def _poll(self) -> None:
        """Poll the whole card's use, which includes the CUDA context and the memory of other libraries."""
        pid, written = os.getpid(), 0.0
        while os.getpid() == pid:
            if self._on_gpu():
                free, total = self._torch.cuda.mem_get_info()
                with self._lock:
                    peak = self._report.phases.setdefault(self._phase, Peak())
                    peak.device_gib = max(peak.device_gib, round((total - free) / GIB, 3))
            if time.monotonic() - written > WRITE_SECONDS:
                written = time.monotonic()
                self._write()
            time.sleep(POLL_SECONDS)

    def _write(self) -> None:
        with self._lock:
            text = json.dumps(self._report.as_json())
            unfinished = self._file.with_suffix(".part")
            unfinished.write_text(text)
            unfinished.replace(self._file)


def _tell(text: str) -> None:
    print(f"[watch {time.strftime('%H:%M:%S')}] {text}", flush=True)
