"""Trainings drawn by lot: settings, levels and pauses in any combination, with the answer that the tables give."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from tests.support.analysis_cases.case import Case, each
from tests.support.analysis_cases.catalogue.memory import oom_text
from tests.support.analysis_cases.catalogue.workers import no_workers
from tests.support.analysis_cases.configs import ABSENT, AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import Want, case_of, critical, fitting_batch, further_memory, pool_of, warning
from tests.support.analysis_cases.machines import A6000, H100, RTX_3060, RTX_3090, RTX_4090, SPARK, Machine
from tests.support.analysis_cases.simulation import Simulation

_COUNT = 12


@dataclass(frozen=True, slots=True)
class Draw:
    """The lots of one memory case."""

    trainer: str
    machine: Machine
    end: str
    phase: str
    base_share: float
    worker_share: float
    batch: int
    checkpointing: bool
    ema: bool
    quantised: bool
    adapter: bool
    resolution: Any
    save_dtype: str


def draw_memory(seed: int) -> Draw:
    chance = random.Random(f"memory {seed}")
    trainer = chance.choice((AI_TOOLKIT, KOHYA))
    phase = chance.choice(("training", "training", "training", "sampling", "saving", "loading"))
    return Draw(
        trainer=trainer,
        machine=chance.choice((RTX_3060, RTX_3090, RTX_4090, A6000, H100, SPARK, SPARK)),
        end="oom" if phase == "loading" else chance.choice(("oom", "high", "full")),
        phase="training" if trainer == KOHYA and phase == "sampling" else phase,
        base_share=chance.choice((0.3, 0.45, 0.68)),
        worker_share=chance.choice((0.0, 0.0, 0.06, 0.33)),
        batch=chance.choice((1, 1, 2, 4, 7)),
        checkpointing=chance.random() < 0.7,
        ema=trainer == AI_TOOLKIT and chance.random() < 0.3,
        quantised=chance.random() < 0.6,
        adapter=chance.random() < 0.8,
        resolution=chance.choice((512, 768, 1024, 1280)),
        save_dtype=chance.choice(("fp16", "float16", "fp32")) if trainer == AI_TOOLKIT else "fp16",
    )


@each(**{str(seed): seed for seed in range(_COUNT)})
def drawn_memory(seed: int) -> Case:
    lot = draw_memory(seed)
    settings: dict[str, Any] = {
        "batch": lot.batch,
        "checkpointing": lot.checkpointing,
        "quantize": lot.quantised,
        "resolution": lot.resolution if lot.trainer == AI_TOOLKIT else f"{lot.resolution},{lot.resolution}",
        "workers": 4 if lot.worker_share else 0,
        "save_dtype": lot.save_dtype,
        **({"ema": lot.ema, "sample_width": 1536, "sample_height": 1536} if lot.trainer == AI_TOOLKIT else {}),
        **({} if lot.adapter else {"network": ABSENT}),
    }
    run = Simulation(lot.trainer, lot.machine, settings)
    is_card = lot.machine.platform == "discrete"
    size = lot.machine.card_gb[0] if is_card else lot.machine.memory_gb
    others = 0.0 if is_card else lot.machine.idle_gb + 6.0  # with the main process
    workers = lot.worker_share * (lot.machine.memory_gb if not is_card else 0.6 * lot.machine.memory_gb)
    held = 0.0 if is_card else workers
    top = size * {"oom": 0.988, "high": 0.925, "full": 0.972}[lot.end]
    calm = size * 0.80 - held - others
    peak = top - held - others
    _live_through(run, lot, base=min(lot.base_share * size, calm - 0.1 * size), calm=calm, peak=peak, workers=workers)
    return case_of(
        run,
        "drawn_memory",
        health="Warning" if lot.end == "high" else "Critical",
        first=_first(run, lot),
        may=further_memory(run, "gpu" if is_card else "unified"),
        is_spoilt=True,
        why=str(lot),
    )


def _live_through(run: Simulation, lot: Draw, *, base: float, calm: float, peak: float, workers: float) -> None:
    """Simulate what was drawn: the peak comes in the drawn phase."""
    if lot.phase == "loading":
        run.log.loading(run.now)
        for share in (0.2, 0.5, 0.8, 1.0):
            run.cards = [share * (peak if lot.machine.platform == "discrete" else peak + workers)]
            run.main = 6.0
            run.wait(25)
        run.fail(oom_text(total=lot.machine.card_gb[0], tried="0.10 GiB"))
        return
    run.load(card=base)
    level = peak if lot.phase == "training" and lot.end != "oom" else calm
    run.train(300, card=level, worker_count=4 if lot.worker_share else 0, workers=workers)
    if lot.end != "oom":
        if lot.phase == "sampling":
            run.sample(24, card=peak)
        elif lot.phase == "saving":
            run.save(24, card=peak)
        run.train(300, card=level)
        run.finish()
        return
    if lot.phase == "sampling":
        run.begin_sampling()
    elif lot.phase == "saving":
        run.begin_saving()
    run.overflow(card=peak)
    run.fail(oom_text(total=lot.machine.card_gb[0], tried="0.10 GiB"))


def _first(run: Simulation, lot: Draw) -> list[Want]:
    """Return the advice of the first row that holds."""
    is_card = lot.machine.platform == "discrete"
    machine = [critical("machine.gpu_memory_gb"), critical("machine.memory_gb")]
    if not is_card and lot.worker_share >= 0.2 and lot.phase != "loading":
        return [no_workers(run)]
    if lot.phase == "sampling":
        return [
            critical(path_of(AI_TOOLKIT, "sample_width"), max=1535),
            critical(path_of(AI_TOOLKIT, "sample_height"), max=1535),
            critical(path_of(AI_TOOLKIT, "disable_sampling"), eq=True),
        ]
    if lot.phase == "saving":
        if lot.ema:
            return [critical(path_of(AI_TOOLKIT, "ema"), eq=False)]
        if lot.save_dtype == "fp32":
            return [critical(path_of(AI_TOOLKIT, "save_dtype"), **{"in": ["fp16", "float16", "bf16", "bfloat16"]})]
        return machine
    base = run.base_cards[0] if is_card and run.base_cards else run.base_system
    peak, size = pool_of(run)
    if lot.adapter and not lot.quantised and (base is None or base >= 0.6 * size):
        first = [critical(path_of(lot.trainer, "quantize"), eq=True)]
        return first + ([critical(path_of(AI_TOOLKIT, "qtype"))] if lot.trainer == AI_TOOLKIT else [])
    if base is None:
        return _any_handle(lot, machine)
    need = peak + (0.1 if lot.end == "oom" else 0.0)
    if lot.batch > 1:
        most = max(1, min(lot.batch - 1, fitting_batch(run, need=need, batch=lot.batch)))
        return [critical(path_of(lot.trainer, "batch"), min=1, max=most)]
    if not lot.checkpointing:
        return [critical(path_of(lot.trainer, "checkpointing"), eq=True)]
    if lot.ema:
        return [critical(path_of(AI_TOOLKIT, "ema"), eq=False)]
    if lot.resolution > 512:
        fits = math.ceil(lot.resolution * math.sqrt((0.9 * size - base) / (need - base)))
        return [critical(path_of(lot.trainer, "resolution"), min=64, max=max(512, fits))]
    return machine


def _any_handle(lot: Draw, machine: list[Want]) -> list[Want]:
    """The weights do not fit and cannot be quantised: any open handle of the card is right."""
    paths = ("batch", "checkpointing", "resolution") + (("ema",) if lot.trainer == AI_TOOLKIT else ())
    return [*machine, *(critical(path_of(lot.trainer, name)) for name in paths)]


# ---------------------------------------------------------------- time


@each(**{str(seed): seed for seed in range(_COUNT)})
def drawn_time(seed: int) -> Case:
    chance = random.Random(f"time {seed}")
    trainer = chance.choice((AI_TOOLKIT, KOHYA))
    sampling = chance.choice((0, 4, 30, 70))  # seconds after 80 of training
    saving = chance.choice((0, 3, 45))
    idle = chance.choice((0, 0, 5, 7))  # samples of ten
    throttle = chance.choice(("", "", "flag", "sw_thermal", "sw_power_cap"))
    settings: dict[str, Any] = {"sample_every": 40, "save_every": 40, "workers": 2, "cache": chance.random() < 0.5}
    run = Simulation(trainer, chance.choice((RTX_3090, RTX_4090)), settings)
    rated = run.machine.rated_clock
    run.info["gpu_rated_clock_mhz"] = f"{rated:.0f}"
    run.load(card=10.0)

    def clock(sample: int) -> tuple[str | None, float]:
        if throttle and sample % 10 < 5:
            return ("sw_power_cap", 0.97 * rated) if throttle == "flag" else (throttle, 0.6 * rated)
        return None, rated

    for _ in range(15):
        run.train(40, card=17.6, busy=lambda sample: 3.0 if sample % 10 < idle else 96.0, clock=clock)
        if saving:
            run.save(saving)
        if sampling:
            run.sample(sampling)
    run.finish()
    wastes = _wastes(run, sampling=sampling, saving=saving, idle=idle, throttle=throttle)
    return case_of(
        run,
        "drawn_time",
        health="Warning" if wastes else "Good",
        first=[want for waste in wastes for want in waste] or None,
        must_include=wastes,
        may=[{"severity": ["warning"], "path": ["machine.*", "*sample*", "*save*", "*worker*", "*cache_latents*"]}]
        if wastes
        else [],
        why=f"sampling {sampling} s, saving {saving} s, idle {idle} of 10, {throttle or 'no throttle'}",
    )


def _wastes(run: Simulation, *, sampling: int, saving: int, idle: int, throttle: str) -> list[list[Want]]:
    """Return the advice for each thing that wastes enough."""
    duration = run.now - float(run.info["started_at"])
    found: list[list[Want]] = []
    if 15 * sampling >= 0.15 * duration:
        every = [warning(path_of(run.trainer, "sample_every"), min=80)]
        found.append(every + ([warning(path_of(AI_TOOLKIT, "disable_sampling"))] if run.trainer == AI_TOOLKIT else []))
    if 15 * saving >= 0.15 * duration:
        found.append([warning(path_of(run.trainer, "save_every"), min=80)])
    if idle >= 5:
        is_cached = run.config.get("cache")
        path = path_of(run.trainer, "workers" if is_cached else "cache")
        found.append([warning(path, min=3) if is_cached else warning(path, eq=True)])
    if throttle == "sw_thermal":
        found.append([warning("machine.cooling"), warning("machine.host")])
    elif throttle == "sw_power_cap":
        found.append([warning("machine.power_limit_watts"), warning("machine.host")])
    return found
