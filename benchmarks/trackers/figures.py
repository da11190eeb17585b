"""The figures of one tracker, each the best of several rounds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trackers.environments import variables
from trackers.process_tree import run_tree

if TYPE_CHECKING:  # it exists for type checkers only
    from trackers.adapters import Adapter

PAUSE_SECONDS = 0.002
KILLED_AFTER_STEPS = 1000
_TIGHT_STEPS, _PACED_STEPS = 100_000, 1000
_MOST_SECONDS = 3.0  # of a loop: a slow tracker logs fewer steps
_IMPORTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Microseconds of the calls in one loop, and of processor time per step."""

    median: float
    p99: float
    max: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one tracker costs and loses."""

    tight: Calls
    paced: Calls
    lost_tight: int
    lost_paced: int
    bytes_per_step: float
    import_ms: float
    start_ms: float
    resident_mib: float


class Probed:
    """A tracker in its environment."""

    def __init__(self, adapter: str, python: str) -> None:
        self._adapter = adapter
        self._python = python
        self._import: str = _module(adapter).IMPORT

    def loop(self, steps: int, *, pause: float = 0.0) -> dict[str, Any]:
        """Log steps; the answer has the processor time of the process and its helpers, and the `bytes` on disk."""
        with tempfile.TemporaryDirectory() as folder:
            files = _files_folder(folder)
            answer: dict[str, Any]
            answer, orphans = self._probe(folder, "loop", str(files), str(steps), str(pause), str(_MOST_SECONDS))
            answer["cpu_seconds"] += orphans
            answer["bytes"] = sum(file.stat().st_size for file in files.rglob("*") if file.is_file())
            return answer

    def lost(self, *, pause: float) -> int:
        """Return how many of the steps cannot be read after the process was killed."""
        with tempfile.TemporaryDirectory() as folder:
            files = str(_files_folder(folder))
            self._probe(folder, "kill", files, str(KILLED_AFTER_STEPS), str(pause), exit_code=-9)
            answer, _ = self._probe(folder, "read", files)
            return KILLED_AFTER_STEPS - int(answer["steps"])

    def import_seconds(self) -> float:
        """Return the seconds of the import in a fresh interpreter."""
        code = f"import time; began = time.perf_counter(); {self._import}; print(time.perf_counter() - began)"
        with tempfile.TemporaryDirectory() as folder:
            ended = run_tree([self._python, "-c", code], env=variables(Path(folder)), cwd=Path(folder))
        return float(ended.output.splitlines()[-1])

    def _probe(self, folder: str, *arguments: str, exit_code: int = 0) -> tuple[Any, float]:
        argv = [self._python, "-m", "trackers.probe", self._adapter, *arguments]
        ended = run_tree(argv, env=variables(Path(folder)), cwd=Path(folder))
        if ended.exit_code != exit_code:
            raise RuntimeError(f"{' '.join(argv)} ended with {ended.exit_code}:\n{ended.output[-2000:]}")
        answers = [line for line in ended.output.splitlines() if line.startswith("{")]
        return (json.loads(answers[-1]) if answers else None), ended.orphans_cpu_seconds


class Measurement:
    """The figures of one tracker, beside a loop without any; its rounds alternate with those of other trackers."""

    def __init__(self, probed: Probed, *, empty: Probed) -> None:
        self._probed = probed
        self._empty = empty
        self._tight: list[dict[str, Any]] = []
        self._paced: list[dict[str, Any]] = []
        self._empty_paced: list[dict[str, Any]] = []

    def measure_round(self) -> None:
        self._tight.append(self._probed.loop(_TIGHT_STEPS))
        self._paced.append(self._probed.loop(_PACED_STEPS, pause=PAUSE_SECONDS))
        self._empty_paced.append(self._empty.loop(_PACED_STEPS, pause=PAUSE_SECONDS))

    def figures(self) -> Figures:
        """Measure what one round is enough for, and return everything."""
        without_steps = self._probed.loop(0)
        longest = max(self._tight, key=lambda one: int(one["logged"]))
        resident_kib = _least(self._paced, "resident_kib") - _least(self._empty_paced, "resident_kib")
        return Figures(
            tight=_best(self._tight, fixed=without_steps, empty=[self._empty.loop(_TIGHT_STEPS)]),
            paced=_best(self._paced, fixed=without_steps, empty=self._empty_paced),
            lost_tight=self._probed.lost(pause=0.0),
            lost_paced=self._probed.lost(pause=PAUSE_SECONDS),
            bytes_per_step=(longest["bytes"] - without_steps["bytes"]) / longest["logged"],
            import_ms=1e3 * min(self._probed.import_seconds() for _ in range(_IMPORTS)),
            start_ms=1e3 * _least(self._tight, "start_seconds"),
            resident_mib=resident_kib / 1024,
        )


def _best(loops: Sequence[dict[str, Any]], *, fixed: dict[str, Any], empty: Sequence[dict[str, Any]]) -> Calls:
    cpu = min((one["cpu_seconds"] - fixed["cpu_seconds"]) / one["logged"] for one in loops)
    cpu_of_empty = min(one["cpu_seconds"] / one["logged"] for one in empty)
    return Calls(
        median=_least(loops, "median_us"),
        p99=_least(loops, "p99_us"),
        max=_least(loops, "max_us"),
        cpu=1e6 * max(cpu - cpu_of_empty, 0.0),
    )


def _least(loops: Sequence[dict[str, Any]], name: str) -> float:
    return min(float(one[name]) for one in loops)


def _files_folder(folder: str) -> Path:
    files = Path(folder) / "run"
    files.mkdir()
    return files


def _module(name: str) -> Adapter:
    return import_module("trackers.adapters." + name)
