"""Labels: the right answer to a simulated training, by the definitions of the analysis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.analysis_cases.case import Case, Label
from tests.support.analysis_cases.configs import path_of
from tests.support.analysis_cases.simulation import Simulation

Want = dict[str, Any]

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "ai-toolkit": {"batch": 1, "checkpointing": True},
    "kohya": {"batch": 1, "checkpointing": False},
}
#: What else frees a card's memory: further advice on it is no false alarm while memory is the trouble.
_CARD_HANDLES: Mapping[str, Sequence[str]] = {
    "ai-toolkit": (
        "config.process.model.*",
        "config.process.train.*batch_size",
        "config.process.train.gradient_*",
        "config.process.train.ema_config.*",
        "config.process.train.unload_text_encoder",
        "config.process*.cache_text_embeddings",
        "config.process.datasets*.resolution",
        "config.process.datasets*.cache_latents*",
        "config.process.train.optimizer",
        "config.process.network.*",
        "config.process.sample.*",
        "config.process.train.disable_sampling",
        "machine.gpu_memory_gb",
    ),
    "kohya": (
        "fp8_base*",
        "full_*",
        "*batch_size",
        "gradient_*",
        "blocks_to_swap",
        "resolution",
        "max_bucket_reso",
        "cache_*",
        "optimizer_type",
        "network_dim",
        "sample_every_n_*",
        "machine.gpu_memory_gb",
    ),
}
_SYSTEM_HANDLES: Mapping[str, Sequence[str]] = {
    "ai-toolkit": (
        "config.process.datasets*.num_workers",
        "config.process.datasets*.prefetch_factor",
        "config.process.datasets*.cache_latents*",
        "config.process.save.dtype",
        "machine.memory_gb",
    ),
    "kohya": ("*data_loader*workers", "cache_latents*", "lowram", "save_precision", "machine.memory_gb"),
}


def critical(path: str, **value: Any) -> Want:
    return {"severity": ["critical"], "path": path, "value": value}


def warning(path: str, **value: Any) -> Want:
    return {"severity": ["warning"], "path": path, "value": value}


def info(path: str, **value: Any) -> Want:
    return {"severity": ["info"], "path": path, "value": value}


def further_memory(run: Simulation, pool: str) -> list[Want]:
    """Return what may be advised besides the cause while a pool (`gpu`, `system`, `unified`) is in trouble."""
    paths = [*(_CARD_HANDLES[run.trainer] if pool != "system" else ())]
    paths += _SYSTEM_HANDLES[run.trainer] if pool != "gpu" else ()
    return [{"severity": ["critical", "warning"], "path": paths}]


def fitting_batch(run: Simulation, *, need: float, batch: int, most: float = 0.90) -> int:
    """Return the largest batch that is predicted to fit into the pool of the summary."""
    _, size = pool_of(run)
    base = run.base_cards[0] if _is_card(run) else run.base_system
    assert base is not None
    return math.floor((most * size - base) / ((need - base) / batch) + 1e-9)


def log_error(kind: str, *texts: str, at: float | None = None, memory: tuple[float, float] | None = None) -> Want:
    """Return an entry that must be there at ERROR; its time within a minute, its memory in GB."""
    want: Want = {"kind": kind, "any": list(texts), "level": "ERROR", "min": 1}
    if at is not None:
        want["timestamp"] = {"value": at, "tolerance": 60}
    if memory is not None:
        want["memory_gb"] = {"min": memory[0], "max": memory[1]}
    return want


def last_memory(run: Simulation) -> tuple[float, float]:
    """Return the range of the summary's pool in the run's last rows, with a little room."""
    is_card = _is_card(run)
    end = run.now
    if is_card:
        fullest = max(range(len(run.cards)), key=lambda card: run.peak_cards[card] / run.machine.card_gb[card])
        rows = [row for row in run.rows["GpuSample"] if row["gpu_index"] == fullest]
        near = [row["memory_used_gb"] for row in rows if end - row["timestamp"] <= 60]
    elif run.machine.is_contained:
        rows = [row for row in run.rows["MetricsSample"] if end - row["timestamp"] <= 60]
        near = [row["main_process_memory_gb"] + row["worker_memory_gb"] for row in rows]
    else:
        rows = [row for row in run.rows["MetricsSample"] if end - row["timestamp"] <= 60]
        near = [row["total_memory_gb"] - row["available_memory_gb"] for row in rows]
    return 0.98 * min(near) - 0.05, 1.02 * max(near) + 0.05


def pool_of(run: Simulation) -> tuple[float, float]:
    """Return peak and size of the pool that the summary shows."""
    if not _is_card(run):
        return run.peak_system, run.machine.system_size
    sizes = run.machine.card_gb
    return max(zip(run.peak_cards, sizes, strict=True), key=lambda pair: pair[0] / pair[1])


def case_of(
    run: Simulation,
    kind: str,
    *,
    health: str,
    why: str,
    first: Sequence[Want] | None = None,
    must_include: Sequence[Sequence[Want]] = (),
    may: Sequence[Want] = (),
    must_not: Sequence[Want] = (),
    must_not_say: Sequence[str] = (),
    errors: Sequence[Want] = (),
    noise: Sequence[str] = (),
    is_spoilt: bool = False,
    is_completed: bool | None = None,
    knows_room: bool = True,
    rows_in_wal: int = 0,
    other_jobs: Mapping[str, Simulation] | None = None,
    figures: Mapping[str, Any] | None = None,
) -> Case:
    """Return the case of a run that is over, with the figures and the rules that follow from what it did."""
    peak, size = pool_of(run)
    completed = run.is_completed if is_completed is None else is_completed
    room = _room(run, peak=peak, size=size, is_fine=completed and not is_spoilt and knows_room)
    ended_badly = not completed and "stopped_by" not in run.info
    label: Label = {
        "kind": kind,
        "job": run.job,
        "framework": run.trainer,
        "health_score": health,
        "training_completed": completed,
        "steps_completed": {"min": max(0, run.step - (1 if completed else 20)), "max": run.step + 1},
        "peak_memory_gb": {"value": round(peak, 2), "tolerance": 0.05 + 0.01 * peak},
        "total_memory_gb": {"value": size, "tolerance": 0.01 * size},
        "duration_minutes": {"value": round(_duration(run) / 60, 2), "tolerance": 0.4},
        "first": None if first is None else list(first),
        "must_include": [*map(list, must_include), *room["must_include"]],
        "may": [*may, *([warning(path_of(run.trainer, "save_every"))] if ended_badly else [])],
        "must_not": [*must_not, *room["must_not"]],
        "must_not_say": list(must_not_say),
        "log_errors": list(errors),
        "noise": list(noise),
        "config": run.config.flat(),
        "why": why,
    }
    label.update(figures or {})
    others = other_jobs or {}
    return Case(
        label=label,
        rows=_with_others(run, others),
        info={run.job: run.info, **{job: other.info for job, other in others.items()}},
        log=run.log.text,
        config=run.config.text,
        config_name=run.config.name,
        rows_in_wal=rows_in_wal,
    )


def _room(run: Simulation, *, peak: float, size: float, is_fine: bool) -> dict[str, list[Any]]:
    """Return what follows from free memory: larger batch, checkpointing off, a smaller card; or none of it."""
    share = peak / size
    batch_path, checkpointing_path = path_of(run.trainer, "batch"), path_of(run.trainer, "checkpointing")
    batch = run.config.get("batch", _DEFAULTS[run.trainer]["batch"])
    larger: Want = {"path": batch_path, "value": {"min": batch + 1}}
    checkpointing_off: Want = {"path": checkpointing_path, "value": {"eq": False}}
    if not is_fine or share >= 0.70 or run.base_system is None:
        return {"must_include": [], "must_not": [larger, checkpointing_off]}
    must_include: list[list[Want]] = []
    fits = fitting_batch(run, need=peak, batch=run.batch)
    must_not: list[Want] = [{"path": batch_path, "value": {"min": fits + 1}}]
    if share < 0.49 and run.machine.platform != "cpu":
        must_include.append([info(batch_path, min=batch + 1, max=fits)])
    if share < 0.39 and run.config.get("checkpointing", _DEFAULTS[run.trainer]["checkpointing"]):
        must_include.append([info(checkpointing_path, eq=False)])
    if run.machine.platform == "discrete" and "price_per_hour_usd" in run.info and size >= 40 and share <= 0.44:
        smaller = next(card for card in (12, 16, 24, 32, 48, 80) if peak <= 0.90 * card)
        must_include.append([info("machine.gpu_memory_gb", eq=smaller)])
    return {"must_include": must_include, "must_not": must_not}


def _is_card(run: Simulation) -> bool:
    is_full = run.system_share > 0.85 and run.system_share > run.card_share
    return run.machine.platform == "discrete" and not is_full


def _duration(run: Simulation) -> float:
    if "started_at" in run.info and "ended_at" in run.info:
        return float(run.info["ended_at"]) - float(run.info["started_at"])
    times = [row["timestamp"] for rows in run.rows.values() for row in rows]
    return max(times) - min(times) if times else 0.0


def _with_others(run: Simulation, others: Mapping[str, Simulation]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of all jobs, numbered as they would be in one file."""
    together: dict[str, list[Mapping[str, Any]]] = {table: [] for table in run.rows}
    for each in (*others.values(), run):
        before = {table: len(rows) for table, rows in together.items()}
        for table, rows in each.rows.items():
            for row in rows:
                moved = {**row, "id": row["id"] + before[table]}
                if row.get("memory_snapshot_id") is not None:
                    moved["memory_snapshot_id"] += before["MetricsSample"]
                together[table].append(moved)
    return together
