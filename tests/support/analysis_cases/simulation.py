"""A simulated training: it loads, trains, samples, saves and ends, and leaves rows, a log and facts behind.

run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 4})
run.load(card=9.0)
run.train(200, card=22.4)
run.finish()
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.analysis_cases.configs import Config
from tests.support.analysis_cases.logs import AiToolkitLog, KohyaLog, new_log
from tests.support.analysis_cases.machines import RTX_4090, Machine

BEGIN = 1_795_000_000.0
INTERVAL = 20.0  # seconds between two samples
JOB = "5d1f0c77a2"

Level = float | Callable[[float], float]
"""A value, or what gives it from the progress, 0 to 1, of the stretch of training."""


def falling_loss(progress: float) -> float:
    return 0.42 - 0.14 * progress


def ordinary_gradient(progress: float) -> float:
    del progress
    return 0.35


class Simulation:
    """A training on one machine, by its clock. Rows carry the numbers that a database would give them."""

    def __init__(
        self,
        trainer: str,
        machine: Machine = RTX_4090,
        settings: Mapping[str, Any] | None = None,
        *,
        steps: int = 600,
        utc_offset: float = 0.0,
        clock_offset: float = 0.0,
        job: str = JOB,
        begin: float = BEGIN,
    ) -> None:
        self.trainer, self.machine, self.total, self.job = trainer, machine, steps, job
        self.config = Config(trainer, {"steps": steps, **(settings or {})})
        self.log: AiToolkitLog | KohyaLog = new_log(trainer, utc_offset=utc_offset)
        self.rows: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("MetricsSample", "GpuSample", "StepMetric", "TrainingEvent")
        }
        self.now = begin
        self.step = 0
        self.cards = [0.0 for _ in machine.card_gb]
        self.main = 0.0
        self.workers = 0.0
        self.worker_count = 0
        self.swap = machine.swap_gb
        self.batch: int = self.config.get("batch", 1)
        self.lr = float(self.config.get("lr", 1e-6))
        self.base_cards: list[float] = []
        self.base_system: float | None = None
        self.peak_cards = [0.0 for _ in machine.card_gb]
        self.peak_system = 0.0
        self.is_completed = False
        self.info: dict[str, str] = {
            "platform": machine.platform,
            "framework": trainer,
            "total_steps": str(steps),
            "started_at": f"{begin - clock_offset:.1f}",
            "gpu_count": str(len(machine.card_gb)),
        }
        if clock_offset:
            self.info["clock_offset_seconds"] = f"{clock_offset:.1f}"
        if utc_offset:
            self.info["utc_offset_seconds"] = f"{utc_offset:.0f}"
        if machine.limit_gb is not None:
            self.info["memory_limit_gb"] = f"{machine.limit_gb}"
        self._clock_offset = clock_offset
        self._chance = random.Random(len(trainer) + steps)
        self._waiting: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self._next_sample = begin + 3
        self._trained_seconds = 0.0
        self._last_bar = 0.0
        self._last_loss: float | None = None

    # ------------------------------------------------------------ phases

    def load(self, *, card: float | Sequence[float] = 8.0, main: float = 6.0, seconds: float = 120.0) -> None:
        """Load the weights: half of the time they are on their way, then they stay."""
        self.log.loading(self.now)
        wanted = [card] * len(self.cards) if isinstance(card, float | int) else list(card)
        for part in range(1, 11):
            share = min(1.0, part / 5)
            self.cards = [share * level for level in wanted]
            self.main = share * main
            self._pass(seconds / 10, busy=0.0)
        self.base_cards = list(wanted)
        self.base_system = self._in_use(self.main, self.workers, self.cards)
        self.log.begin(self.total)
        self.event("training_start", step=0, batch_size=self.batch)

    def train(
        self,
        steps: int,
        *,
        card: Level | None = None,
        main: Level | None = None,
        workers: Level | None = None,
        worker_count: int | None = None,
        swap: Level | None = None,
        loss: Callable[[float], float | None] = falling_loss,
        gradient: Callable[[float], float | None] = ordinary_gradient,
        lr: Callable[[float], float | None] | None = None,
        busy: Callable[[int], float] = lambda sample: 99.0 - 7 * sample % 13,
        clock: Callable[[int], tuple[str | None, float]] | None = None,
        pace: float = 2.0,
        logs_loss: bool = True,
    ) -> None:
        """Train some steps; a row every ten."""
        if worker_count is not None:
            self.worker_count = worker_count
        for done in range(1, steps + 1):
            progress = done / steps
            if card is not None:
                self.cards = [_at(card, progress)] * len(self.cards)
            self.main = self.main if main is None else _at(main, progress)
            self.workers = self.workers if workers is None else _at(workers, progress)
            self.swap = self.swap if swap is None else _at(swap, progress)
            self._pass(pace, busy=busy, clock=clock)
            self.step += 1
            self._trained_seconds += pace
            value = loss(progress)
            self._last_loss = value
            if self.step % 10 == 0:
                self._step_row(value, gradient(progress), self.lr if lr is None else lr(progress), pace)
            if self._trained_seconds - self._last_bar >= 30:
                self._last_bar = self._trained_seconds
                self._bar(value if logs_loss else falling_loss(progress))

    def sample(self, seconds: float = 20.0, *, card: float | None = None, main: float | None = None) -> None:
        """Make pictures, perhaps at another level of memory."""
        self.log.sampling(self.step)
        self.event("sampling_start", step=self.step)
        before = (list(self.cards), self.main)
        self._move(card, main)
        self._pass(seconds, busy=97.0)
        self.snapshot()
        self.event("sampling_end", step=self.step)
        self.cards, self.main = before

    def save(self, seconds: float = 6.0, *, card: float | None = None, main: float | None = None) -> None:
        """Save a checkpoint, perhaps at another level of memory."""
        self.begin_saving()
        before = (list(self.cards), self.main)
        self._move(card, main)
        self._pass(seconds, busy=1.0)
        self.snapshot()
        self.event("save_end", step=self.step)
        self.cards, self.main = before
        self.log.saved(self.step)

    def begin_saving(self) -> None:
        self.log.saving(self.step)
        self.event("save_start", step=self.step)

    def begin_sampling(self) -> None:
        self.log.sampling(self.step)
        self.event("sampling_start", step=self.step)

    def change_batch(self, new: int) -> None:
        self.event("batch_size_adjustment", step=self.step, old_batch_size=self.batch, new_batch_size=new)
        self.batch = new

    def overflow(self, *, card: float | None = None, main: float | None = None) -> None:
        """Fill a pool and record it as an out-of-memory."""
        self._move(card, main)
        self.event("oom_error", step=self.step + 1, batch_size=self.batch)

    # ------------------------------------------------------------ ends

    def finish(self) -> None:
        """Do what a trainer does after the last step."""
        before = self.log.text
        self._bar(self._last_loss)
        last = self.log.text[len(before) :]
        self._pass(4.0, busy=1.0)
        self.log.end(self.now, last)
        self.event("training_end", step=self.step)
        self._end(exit_code=0)
        self.is_completed = True

    def fail(self, error: str, *, exit_code: int = 1, is_orderly: bool = True) -> None:
        """End by an error that the log shows."""
        self.log.failure(error)
        if is_orderly:
            self.event("training_end", step=self.step)
        self._end(exit_code=exit_code)

    def be_killed(self, *, signal: int = 9) -> None:
        """End by a signal, without a word."""
        self._end(exit_code=128 + signal, exit_signal=signal)

    def be_stopped(self, *, signal: int = 15) -> None:
        """End because the user wants it."""
        self.log.text += "\nJob stopped\n"
        self._end(exit_code=128 + signal, exit_signal=signal)
        self.info["stopped_by"] = "user"

    # ------------------------------------------------------------ rows

    def event(self, kind: str, **details: int) -> None:
        """Record an event with a snapshot of memory, which is written at once."""
        taken = self.snapshot()
        self._add(
            "TrainingEvent",
            timestamp=round(self.now, 2),
            event_type=kind,
            details=json.dumps(details),
            memory_snapshot_id=taken,
        )

    def snapshot(self) -> int:
        """Measure now; returns the number of the row."""
        machine, cards = self._measured(50.0, None, self.machine.rated_clock)
        self._write(machine, cards)
        return len(self.rows["MetricsSample"])

    def wait(self, seconds: float, *, busy: float = 0.0) -> None:
        """Let time pass at the present levels."""
        self._pass(seconds, busy=busy)

    def flush(self) -> None:
        for machine, cards in self._waiting:
            self._write(machine, cards)
        self._waiting.clear()

    @property
    def system_share(self) -> float:
        return self.peak_system / self.machine.system_size

    @property
    def card_share(self) -> float:
        shares = [peak / size for peak, size in zip(self.peak_cards, self.machine.card_gb, strict=True)]
        return max(shares, default=0.0)

    def _move(self, card: float | None, main: float | None) -> None:
        if card is not None:
            self.cards = [card] * len(self.cards)
        if main is not None:
            self.main = main

    def _pass(
        self,
        seconds: float,
        *,
        busy: float | Callable[[int], float],
        clock: Callable[[int], tuple[str | None, float]] | None = None,
    ) -> None:
        until = self.now + seconds
        while self._next_sample <= until:
            self.now = self._next_sample
            number = len(self.rows["MetricsSample"]) + len(self._waiting)
            throttle, speed = clock(number) if clock else (None, self.machine.rated_clock)
            self._waiting.append(self._measured(busy(number) if callable(busy) else busy, throttle, speed))
            if len(self._waiting) == 10:
                self.flush()
            self._next_sample += INTERVAL
        self.now = until

    def _wavering(self, level: float) -> float:
        return level * (1 - 0.004 * self._chance.random())

    def _in_use(self, main: float, workers: float, cards: Sequence[float]) -> float:
        if self.machine.is_contained:
            return main + workers
        shared = sum(cards) if self.machine.platform == "unified" else 0.0
        return self.machine.idle_gb + main + workers + shared

    def _measured(self, busy: float, throttle: str | None, clock: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        machine = self.machine
        main, workers, *levels = map(self._wavering, (self.main, self.workers, *self.cards))
        in_use = self._in_use(main, workers, levels)
        host = in_use + machine.idle_gb if machine.is_contained else in_use
        self.peak_system = max(self.peak_system, in_use)
        self.peak_cards = [max(pair) for pair in zip(self.peak_cards, levels, strict=True)]
        knows_cards = machine.platform == "discrete"
        sample = {
            "timestamp": round(self.now, 2),
            "total_memory_gb": machine.memory_gb,
            "used_memory_gb": round(min(machine.memory_gb, host + machine.page_cache_gb), 2),
            "available_memory_gb": round(machine.memory_gb - host, 2),
            "swap_used_gb": round(self.swap, 2),
            "main_process_memory_gb": round(main, 2),
            "worker_memory_gb": round(workers, 2),
            "worker_count": self.worker_count,
            "gpu_memory_used_gb": round(levels[0], 2) if knows_cards else None,
            "gpu_utilization_percent": busy if machine.card_gb else None,
            "cpu_utilization_percent": round(20 + 5 * self._chance.random(), 1),
        }
        cards = [
            {
                "timestamp": round(self.now, 2),
                "gpu_index": place,
                "name": machine.card,
                "memory_used_gb": round(level, 2) if knows_cards else None,
                "memory_total_gb": size if knows_cards else None,
                "utilization_percent": busy,
                "temperature_c": 68.0,
                "power_watts": round(machine.power_limit * (0.1 + 0.008 * busy), 1),
                "power_limit_watts": machine.power_limit,
                "clock_mhz": clock,
                "throttle": throttle,
            }
            for place, (level, size) in enumerate(zip(levels, machine.card_gb, strict=True))
        ]
        return sample, cards

    def _write(self, machine: dict[str, Any], cards: list[dict[str, Any]]) -> None:
        self._add("MetricsSample", **machine)
        for card in cards:
            self._add("GpuSample", **card)

    def _step_row(self, loss: float | None, gradient: float | None, lr: float | None, pace: float) -> None:
        place = self.step * 0.618 % 1  # even over any stretch, so that medians follow the curve
        self._add(
            "StepMetric",
            step=self.step,
            timestamp=round(self.now, 2),
            loss=None if loss is None else round(loss * (0.8 + 0.45 * place), 6),
            batch_size=self.batch,
            gradient_norm=None if gradient is None else round(gradient * self._chance.uniform(0.7, 1.4), 4),
            learning_rate=lr,
            step_time_seconds=pace,
        )

    def _bar(self, loss: float | None) -> None:
        self.log.bar(self.step, self.total, self._trained_seconds, loss=loss, lr=self.lr)

    def _add(self, table: str, **row: Any) -> None:
        self.rows[table].append({"id": len(self.rows[table]) + 1, "job_id": self.job, **row})

    def _end(self, *, exit_code: int, exit_signal: int | None = None) -> None:
        self.flush()
        self.info["exit_code"] = str(exit_code)
        if exit_signal is not None:
            self.info["exit_signal"] = str(exit_signal)
        self.info["ended_at"] = f"{self.now - self._clock_offset:.1f}"


def _at(level: Level, progress: float) -> float:
    return level(progress) if callable(level) else level
