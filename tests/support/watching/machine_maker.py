"""Made-up trainings whose machine is sampled as well: what it does in each part of the run is known by construction.

The recorder takes a sample every 5 seconds and writes ten at a time, two while the training sleeps, so that a watcher
gets them a little late.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from stationmaster.watch.stillness import MachineMoment
from tests.support.watching.trace_maker import MadeTrace, Run, Slowness, Stall, Trainer

SAMPLE_SECONDS = 5.0
WRITTEN_AT_ONCE, WRITTEN_AT_ONCE_ASLEEP = 10, 2

Readings = Callable[[random.Random], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Activity:
    """What a machine's samples show while it does this. `None` is a reading that fails."""

    gpu: tuple[float, float] | None = (0.0, 0.0)
    gpu_power: float = 0.12
    cpu: tuple[float, float] = (0.0, 0.6)
    io: tuple[float, float] | None = (0.0, 0.0)
    network: tuple[float, float] | None = (0.0, 0.002)
    state: str | None = "asleep"
    running_share: float = 0.0  # how often one of its threads happens to run
    memory_growth: float = 0.0  # GB per sample
    restarts_processes: bool = False
    is_sampled: bool = True


TRAINING = Activity(gpu=(82, 100), gpu_power=0.9, cpu=(90, 240), io=(1, 40), state=None)
ASLEEP = Activity()
HEARTBEAT = Activity(cpu=(0.4, 3.0), io=(0.0, 0.001), network=(0.0, 0.004), running_share=0.06)
POLLS_A_SERVICE = Activity(cpu=(0.1, 2.0), network=(0.001, 0.005))
SPINS_ON_GPU = Activity(gpu=(100, 100), gpu_power=0.4, cpu=(98, 101), state=None)
SPINS_ON_CPU = Activity(cpu=(98, 101), state=None)
COMPUTES_ON_GPU = Activity(gpu=(60, 100), gpu_power=0.8, cpu=(0.0, 2.0))
FEEDS_SLOWLY = Activity(gpu=(0, 9), cpu=(4, 30), io=(0.05, 2.0))
WAITS_FOR_DISK = Activity(state="disk")
SUSPENDED = Activity(state="stopped")
WRITES = Activity(cpu=(8, 60), io=(60, 400), state="disk")
WRITES_REMOTELY = Activity(cpu=(0.5, 4.0), io=(0.0, 0.002), network=(0.05, 0.4))
DOWNLOADS = Activity(cpu=(5, 40), io=(5, 30), network=(5, 30), state="asleep")
TRICKLES = Activity(cpu=(0.1, 1.0), network=(0.015, 0.06))
LOADS = Activity(cpu=(40, 100), io=(100, 900), memory_growth=0.05, state=None)
COMPILES = Activity(cpu=(90, 700), restarts_processes=True, state=None)
FILLS_MEMORY = Activity(cpu=(2.0, 8.0), memory_growth=0.03)
STARTS_WORKERS = Activity(cpu=(1.0, 8.0), restarts_processes=True)
BLIND_GPU = Activity(gpu=None)
BLIND_IO = Activity(io=None)
BLIND_STATES = Activity(state=None)
NOT_SAMPLED = Activity(is_sampled=False)


class SampledRun(Run):
    """A training and its machine; what nothing else is named for is idle time of the given kind."""

    def __init__(
        self, trainer: Trainer, *, seed: int, total: int, step_seconds: float, gpus: int = 1, processes: int = 5
    ) -> None:
        super().__init__(trainer, seed=seed, total=total, step_seconds=step_seconds)
        self.gpus, self.processes = gpus, processes
        self._spans: list[tuple[float, float, Activity]] = []
        self._doing: Activity = LOADS

    @contextmanager
    def doing(self, activity: Activity) -> Iterator[None]:
        """The machine does this meanwhile."""
        begin, before, self._doing = self.t, self._doing, activity
        try:
            yield
        finally:
            self._doing = before
            self._spans.append((begin, self.t, activity))

    def rest(self, seconds: float, activity: Activity) -> None:
        with self.doing(activity):
            self.quiet(seconds)

    def train(self, steps: int, slowness: Slowness = lambda trained: 1.0) -> None:
        busy = TRAINING if self.gpus else replace(SPINS_ON_CPU, io=(0.5, 4.0))
        with self.doing(busy):
            super().train(steps, slowness)

    def load(self, seconds: float = 90.0) -> None:
        with self.doing(self._doing if self._doing is not LOADS else LOADS):
            super().load(seconds)

    def sampled(self, made: MadeTrace) -> SampledTrace:
        """The run with its samples, as (when they arrive, what they show)."""
        # Inner spans were noted first, and win; the rest is what happened last.
        samples: list[tuple[float, MachineMoment]] = []
        batch: list[MachineMoment] = []
        pids, memory = list(range(100, 100 + self.processes)), 6.0
        at = self.random.uniform(0, SAMPLE_SECONDS)
        last = self._spans[-1][2] if self._spans else ASLEEP
        spans = _Spans(self._spans, otherwise=last)
        while at < made.end:
            activity = spans.at(at)
            if activity.restarts_processes:
                pids = [*pids[:1], *(pid + len(pids) for pid in pids[1:])] or pids
            memory += activity.memory_growth
            if activity.is_sampled:
                batch.append(self._moment(at, activity, pids, memory))
            is_asleep = bool(batch) and set(batch[-1].states) == {"asleep"}
            if len(batch) >= (WRITTEN_AT_ONCE_ASLEEP if is_asleep else WRITTEN_AT_ONCE):
                samples += [(at, moment) for moment in batch]
                batch = []
            at += SAMPLE_SECONDS * self.random.uniform(0.99, 1.02)
        return SampledTrace(made=made, samples=samples)

    def _moment(self, at: float, activity: Activity, pids: list[int], memory: float) -> MachineMoment:
        states: list[str | None] = [activity.state] * len(pids)
        if activity.state == "asleep" and self.random.random() < activity.running_share:
            states[0] = "running"
        has_gpus = self.gpus > 0
        return MachineMoment(
            at=at,
            gpus=self.gpus,
            gpu_percent=self._between(activity.gpu) if has_gpus else None,
            gpu_power_part=activity.gpu_power if has_gpus and activity.gpu is not None else None,
            gpu_memory_gb=20.0 if has_gpus and activity.gpu is not None else None,
            cpu_percent=self._between(activity.cpu),
            memory_gb=memory + self.random.uniform(0, 0.004),
            io_mb_per_second=self._between(activity.io),
            network_mb_per_second=self._between(activity.network),
            processes=tuple(pids),
            states=tuple(states),
        )

    def _between(self, bounds: tuple[float, float] | None) -> float | None:
        return None if bounds is None else self.random.uniform(*bounds)


class _Spans:
    def __init__(self, spans: list[tuple[float, float, Activity]], *, otherwise: Activity) -> None:
        edges = sorted({edge for begin, end, _ in spans for edge in (begin, end)})
        self._edges = edges
        self._kinds = [next((kind for begin, end, kind in spans if begin <= edge < end), otherwise) for edge in edges]
        self._otherwise = otherwise

    def at(self, moment: float) -> Activity:
        place = bisect.bisect_right(self._edges, moment) - 1
        return self._kinds[place] if place >= 0 else self._otherwise


@dataclass(frozen=True, kw_only=True)
class SampledTrace:
    """A made-up run with its samples; `proves` is whether they show the stall."""

    made: MadeTrace
    samples: list[tuple[float, MachineMoment]]

    @property
    def stalls(self) -> list[Stall]:
        return self.made.stalls
