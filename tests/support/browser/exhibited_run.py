"""What a machine would have measured of a training of the exhibition, and what the trainer would have printed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stationmaster.model import StepReading
from stationmaster.series.table import Table, table_of
from tests.support.browser.exhibits import LLM, Exhibit

_SAMPLE_SECONDS = 15.0
_LOAD_SECONDS = 95.0
_SAVE_SECONDS = 4.0
_LOG_EVERY = 10
_WARM_UP = 0.02  # of the run, in which the learning rate rises


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Sampling or saving, at one step."""

    kind: str
    step: int
    begin: float
    end: float


@dataclass(kw_only=True)
class Run:
    """The run by the machine's clock: `begin` is when the trainer started, `end` its last sign."""

    exhibit: Exhibit
    begin: float
    end: float = 0.0
    steps: list[tuple[int, float]] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)


def run_of(exhibit: Exhibit, *, now: float) -> Run:
    """When each step ended and when it paused; a running one ends now, give or take a step."""
    run = Run(exhibit=exhibit, begin=now - exhibit.began)
    chance = random.Random(exhibit.id)
    clock = run.begin + _LOAD_SECONDS
    pace = exhibit.pace
    if exhibit.outcome is None and exhibit.done:
        pauses = exhibit.done // exhibit.sample_every * exhibit.sample_seconds + exhibit.done // exhibit.save_every * 4
        pace = exhibit.done / (exhibit.began - exhibit.stuck_for - _LOAD_SECONDS - pauses - 2)
    for step in range(1, exhibit.done + 1):
        clock += (1 + chance.gauss(0, 0.04)) / pace
        run.steps.append((step, clock))
        for kind, every, seconds in (
            ("save", exhibit.save_every, _SAVE_SECONDS),
            ("sampling", exhibit.sample_every, exhibit.sample_seconds),
        ):
            if step % every == 0 and (kind == "save" or exhibit.has_pictures):
                run.pauses.append(Pause(kind=kind, step=step, begin=clock, end=clock + seconds))
                clock += seconds
    run.end = clock if exhibit.outcome is not None else now
    return run


def losses_of(exhibit: Exhibit) -> list[float]:
    """The loss of each step: it falls quickly, then slowly; one step may have a spike."""
    chance = random.Random(f"{exhibit.id}/loss")
    first, last, noise = exhibit.loss
    found = []
    for step in range(1, exhibit.done + 1):
        fallen = 0.75 * math.exp(-step / (0.06 * exhibit.steps)) + 0.25 * math.exp(-step / (0.5 * exhibit.steps))
        value = last + (first - last) * fallen + abs(chance.gauss(0, noise)) * (0.4 + fallen)
        found.append(value * 4.5 if step == exhibit.spike_at else value)
    return found


def learning_rate(exhibit: Exhibit, step: int) -> float:
    done = step / exhibit.steps
    rate = float(exhibit.parameters.get("learning_rate", 1e-4))
    return rate * (done / _WARM_UP if done < _WARM_UP else (1 + math.cos(math.pi * done)) / 2)


def readings_of(run: Run) -> list[StepReading]:
    losses = losses_of(run.exhibit)
    return [
        StepReading(
            attempt=1,
            at=at,
            step=step,
            loss=losses[step - 1],
            learning_rate=learning_rate(run.exhibit, step),
            steps_per_second=run.exhibit.pace,
        )
        for step, at in run.steps
        if step % _LOG_EVERY == 0
    ]


def tables_of(run: Run) -> list[Table]:
    """All rows that the machine's recorder would have sent."""
    times = _times(run)
    return [_steps(run), *_machine(run, times), _events(run), _facts(run)]


def _times(run: Run) -> list[float]:
    count = int((run.end - run.begin) / _SAMPLE_SECONDS)
    return [run.begin + place * _SAMPLE_SECONDS for place in range(count)]


def _steps(run: Run) -> Table:
    exhibit, losses = run.exhibit, losses_of(run.exhibit)
    chance = random.Random(f"{exhibit.id}/norm")
    ids, at = [step for step, _ in run.steps], [at for _, at in run.steps]
    seconds = [(1 + chance.gauss(0, 0.03)) / exhibit.pace for _ in ids]
    norms = [chance.lognormvariate(-1.1, 0.22) * (3.8 if step == exhibit.spike_at else 1) for step in ids]
    return table_of(
        "StepMetric",
        {
            "id": ids,
            "step": ids,
            "timestamp": at,
            "loss": losses,
            "batch_size": [int(exhibit.parameters.get("batch_size", 1))] * len(ids),
            "gradient_norm": norms,
            "learning_rate": [learning_rate(exhibit, step) for step in ids],
            "step_time_seconds": seconds,
        },
    )


def _machine(run: Run, times: Sequence[float]) -> Iterator[Table]:
    exhibit, chance = run.exhibit, random.Random(f"{run.exhibit.id}/machine")
    last_step = run.steps[-1][1] if run.steps else run.begin
    busy, memory = [], []
    for at in times:
        loaded = min(1.0, (at - run.begin) / _LOAD_SECONDS)
        training = at - run.begin > _LOAD_SECONDS
        pause = next((each.kind for each in run.pauses if each.begin <= at < each.end), None)
        is_stuck = exhibit.stuck_for > 0 and at > last_step
        starving = exhibit.starved and chance.random() < 0.42
        level = 0.0 if not training or is_stuck or pause == "save" or starving else 99.0 - chance.random() * 6
        busy.append(round(level if level else chance.random() * 3, 1))
        peak = exhibit.memory if pause == "sampling" or not exhibit.has_pictures else exhibit.memory * 0.955
        share = 0.62 * exhibit.memory * loaded if not training else peak
        memory.append(exhibit.card.gib * share * (1 - 0.004 * chance.random()))
    count, ids = len(times), list(range(1, len(times) + 1))
    main = [5.5 + 7.5 * min(1.0, (at - run.begin) / _LOAD_SECONDS) + chance.random() * 0.2 for at in times]
    yield table_of(
        "MetricsSample",
        {
            "id": ids,
            "timestamp": list(times),
            "total_memory_gb": [62.8] * count,
            "used_memory_gb": [each + 9.0 for each in main],
            "available_memory_gb": [62.8 - 5.0 - each for each in main],
            "swap_used_gb": [0.0] * count,
            "main_process_memory_gb": main,
            "worker_memory_gb": [1.6] * count,
            "worker_count": [2] * count,
            "gpu_memory_used_gb": memory,
            "gpu_utilization_percent": busy,
            "cpu_utilization_percent": [round(11 + chance.random() * 6, 1) for _ in times],
        },
    )
    yield table_of(
        "GpuSample",
        {
            "id": ids,
            "timestamp": list(times),
            "gpu_index": [0] * count,
            "name": [f"NVIDIA GeForce {exhibit.card.name}"] * count,
            "memory_used_gb": memory,
            "memory_total_gb": [exhibit.card.gib] * count,
            "utilization_percent": busy,
            "temperature_c": [round(41 + 0.24 * each + chance.random() * 2) for each in busy],
            "power_watts": [round(62 + 3.4 * each + chance.random() * 12, 1) for each in busy],
            "power_limit_watts": [450.0] * count,
            "clock_mhz": [2520.0] * count,
        },
    )
    yield table_of(
        "ResourceSample",
        {
            "id": ids,
            "timestamp": list(times),
            "disk_total_gb": [100.0] * count,
            "disk_free_gb": [58.0 - 12.0 * place / max(1, count) for place in range(count)],
            "disk_read_mb_per_second": [round(chance.random() * 8, 2) for _ in times],
            "disk_write_mb_per_second": [round(chance.random() * 2, 2) for _ in times],
            "network_received_mb_per_second": [0.02] * count,
            "network_sent_mb_per_second": [0.01] * count,
        },
    )


def _events(run: Run) -> Table:
    rows: list[tuple[float, str, int]] = [(run.begin + _LOAD_SECONDS, "training_start", 0)]
    for pause in run.pauses:
        rows += [(pause.begin, f"{pause.kind}_start", pause.step), (pause.end, f"{pause.kind}_end", pause.step)]
    if run.exhibit.outcome is not None:
        ended = "oom_error" if run.exhibit.memory > 0.99 else "training_end"
        rows.append((run.end, ended, run.exhibit.done))
    ids = list(range(1, len(rows) + 1))
    return table_of(
        "TrainingEvent",
        {
            "id": ids,
            "timestamp": [at for at, _, _ in rows],
            "event_type": [kind for _, kind, _ in rows],
            "details": [json.dumps({"step": step}) for _, _, step in rows],
        },
    )


def _facts(run: Run) -> Table:
    facts = {
        "platform": "discrete",
        "gpu_count": "1",
        "framework": {"flux": "ai-toolkit", "sdxl": "kohya"}.get(run.exhibit.recipe.partition("-")[0], "auto"),
        "total_steps": str(run.exhibit.steps),
        "started_at": str(run.begin),
    }
    return table_of(
        "RunInfo",
        {"id": list(range(1, len(facts) + 1)), "key": list(facts), "value": list(facts.values())},
    )


def log_of(run: Run) -> str:
    """What the training step printed."""
    exhibit, losses = run.exhibit, losses_of(run.exhibit)
    lines = [
        "[stationmaster] loading: the base model",
        "Loading checkpoint shards: 100%|██████████| 3/3 [00:41<00:00, 13.8s/it]",
        f"create LoRA network. base dim (rank): {exhibit.parameters.get('rank', 32)}, alpha: 32",
        f"  -  Found {exhibit.images} images",
        "[stationmaster] caching: latents",
        "[stationmaster] training: begins",
    ]
    pauses = {pause.step: pause for pause in run.pauses if pause.kind == "sampling"}
    for step, _ in run.steps:
        if step % _LOG_EVERY == 0:
            left = int((exhibit.steps - step) / exhibit.pace)
            lines.append(
                f"[stationmaster] step {step}/{exhibit.steps} loss {losses[step - 1]:.4f}"
                f" lr {learning_rate(exhibit, step):.3e} pace {1 / exhibit.pace:.3f} s/step"
                f" eta {left // 3600}:{left // 60 % 60:02}:{left % 60:02}"
            )
        if step == 730:
            lines.append("UserWarning: torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly")
        if step % exhibit.save_every == 0:
            lines += [f"[stationmaster] saving: step {step}", f"Saved checkpoint to output/{exhibit.name}_{step:09}"]
        if step in pauses:
            lines.append(f"[stationmaster] sampling: step {step}")
    if exhibit.memory > 0.99:
        lines += [
            "Traceback (most recent call last):",
            '  File "/opt/sd-scripts/sdxl_train_network.py", line 231, in <module>',
            "    trainer.train(args)",
            '  File "/opt/sd-scripts/train_network.py", line 1288, in train',
            "    accelerator.backward(loss)",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of"
            " 11.76 GiB of which 58.31 MiB is free.",
        ]
    elif exhibit.outcome is not None and exhibit.recipe != LLM:
        lines += ["[stationmaster] saving: the last step", "Saved checkpoint"]
    return "\n".join(lines) + "\n"
