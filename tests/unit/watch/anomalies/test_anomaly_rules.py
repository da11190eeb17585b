"""Each rule finds its trouble, and nothing in a healthy run."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import ConfigInvalid
from stationmaster.money import from_dollars
from stationmaster.watch.anomalies.base import (
    Confidence,
    DiskSample,
    GpuSample,
    LossPoint,
    MemoryPeak,
    Reaction,
    SavedCheckpoint,
    SkewSample,
    Vitals,
)
from stationmaster.watch.anomalies.registry import RULES, USUAL_REACTIONS, find_anomalies, read_reactions

GIB = 2.0**30


def losses(*values: float, gradient: float | None = None) -> list[LossPoint]:
    return [LossPoint(at=n * 10.0, step=n * 5, loss=value, gradient_norm=gradient) for n, value in enumerate(values)]


def falling(count: int, *, seed: int = 1) -> list[float]:
    noise = random.Random(seed)
    return [0.2 + 0.6 * math.exp(-n / 80) + noise.gauss(0, 0.02) for n in range(count)]


def gpu(*, used: float = 95.0, memory: float = 20.0, growth: float = 0.0, minutes: int = 90) -> list[GpuSample]:
    return [
        GpuSample(
            at=n * 60.0,
            utilization_percent=used,
            memory_used_bytes=(memory + growth * n / 60) * GIB,
            memory_total_bytes=24 * GIB,
        )
        for n in range(minutes)
    ]


HEALTHY = Vitals(
    now=5400.0,
    started_at=0.0,
    step=1350,
    total_steps=3000,
    phase="training",
    steps_per_second=0.25,
    eta_seconds=6600.0,
    losses=losses(*falling(270)),
    gpus=[gpu()],
    memory=[MemoryPeak(used_gb=20.0, size_gb=24.0, gpu=0), MemoryPeak(used_gb=16.0, size_gb=64.0)],
    disk=[DiskSample(at=n * 60.0, free_bytes=40 * GIB) for n in range(90)],
    checkpoints=[
        SavedCheckpoint(at=step * 4.0, step=step, size_bytes=0.3 * GIB) for step in (250, 500, 750, 1000, 1250)
    ],
    checkpoint_every_steps=250,
    clock=[SkewSample(at=0.0, ahead_seconds=1.0), SkewSample(at=60.0, ahead_seconds=1.4)],
    max_seconds=5 * 3600.0,
    price_per_hour=from_dollars("0.4"),
    spent=from_dollars("0.6"),
    credit=from_dollars("10"),
)

TROUBLE = {
    "nan_loss": replace(HEALTHY, losses=losses(0.4, 0.3, math.nan)),
    "divergence": replace(HEALTHY, losses=losses(*falling(200), *[0.25 * 1.02**n for n in range(100)])),
    "loss_spike": replace(HEALTHY, losses=losses(*falling(200), 1.9)),
    "plateau": replace(HEALTHY, losses=losses(*falling(160), *[0.281] * 240)),
    "gpu_idle": replace(HEALTHY, gpus=[gpu(used=2.0)]),
    "memory_creep": replace(HEALTHY, gpus=[gpu(memory=20.0, growth=1.8)]),
    "memory_high": replace(HEALTHY, memory=[MemoryPeak(used_gb=21.0, size_gb=24.0, gpu=0)]),
    "memory_critical": replace(HEALTHY, memory=[MemoryPeak(used_gb=63.0, size_gb=64.0)]),
    "disk_filling": replace(HEALTHY, disk=[DiskSample(at=5400.0, free_bytes=0.2 * GIB)]),
    "checkpoint_cadence": replace(HEALTHY, checkpoints=HEALTHY.checkpoints[:3]),
    "clock_skew": replace(HEALTHY, clock=[SkewSample(at=0.0, ahead_seconds=-900.0)]),
    "eta_beyond_hours": replace(HEALTHY, max_seconds=3 * 3600.0),
    "eta_beyond_credit": replace(HEALTHY, credit=from_dollars("1")),
}


@pytest.mark.parametrize("kind", RULES)
def test_each_rule_finds_its_trouble_and_only_that(kind: str) -> None:
    found = [finding.anomaly for finding in find_anomalies(TROUBLE[kind])]
    assert [anomaly.kind for anomaly in found] == [kind]
    assert any(character.isdigit() for character in found[0].evidence) or kind == "nan_loss"


@given(st.integers(0, 10_000))
def test_a_healthy_run_has_none(seed: int) -> None:
    assert find_anomalies(replace(HEALTHY, losses=losses(*falling(270, seed=seed)))) == []


def test_a_run_of_which_nothing_is_known_has_none() -> None:
    assert find_anomalies(Vitals(now=0.0)) == []


def test_the_silent_kind_of_nan_is_found() -> None:
    silent = Vitals(now=0.0, losses=[*losses(0.4, 0.3), LossPoint(at=30, step=9, loss=0.0, gradient_norm=math.nan)])
    zeros = Vitals(now=0.0, losses=losses(0.4, 0.3, 0.0, 0.0, 0.0))
    assert [f.anomaly.confidence for f in find_anomalies(silent)] == [Confidence.HIGH]
    assert [f.anomaly.kind for f in find_anomalies(zeros)] == ["nan_loss"]


def test_a_gpu_that_waits_during_sampling_or_works_now_and_then_is_not_idle() -> None:
    assert find_anomalies(replace(TROUBLE["gpu_idle"], phase="sampling")) == []
    busy_once = [*gpu(used=2.0)[:-3], replace(gpu()[-3], utilization_percent=80.0), *gpu(used=2.0)[-2:]]
    assert find_anomalies(replace(HEALTHY, gpus=[busy_once])) == []


def test_memory_that_grows_but_lasts_to_the_end_is_no_trouble() -> None:
    assert find_anomalies(replace(HEALTHY, gpus=[gpu(memory=10.0, growth=0.5)])) == []


def test_a_disk_that_fills_before_the_next_checkpoint_is_seen_ahead() -> None:
    disk = [DiskSample(at=5000.0 + n * 60, free_bytes=(1.5 - 0.2 * n) * GIB) for n in range(6)]
    found = find_anomalies(replace(HEALTHY, disk=disk))
    assert [f.anomaly.kind for f in found] == ["disk_filling"]
    assert found[0].anomaly.confidence is Confidence.MEDIUM


def test_a_clock_that_was_set_is_told_with_its_direction() -> None:
    jumped = [SkewSample(at=0.0, ahead_seconds=0.0), SkewSample(at=60.0, ahead_seconds=-45.0)]
    found = find_anomalies(replace(HEALTHY, clock=jumped))
    assert "back" in found[0].anomaly.evidence


def test_a_reaction_is_as_usual_or_as_configured() -> None:
    assert find_anomalies(TROUBLE["nan_loss"])[0].reaction is Reaction.ALERT
    chosen = read_reactions({"nan_loss": "stop"})
    assert find_anomalies(TROUBLE["nan_loss"], chosen)[0].reaction is Reaction.STOP


@pytest.mark.parametrize("settings", [{"nan": "stop"}, {"nan_loss": "explode"}])
def test_an_unknown_rule_or_reaction_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigInvalid):
        read_reactions(settings)


def test_what_was_reported_is_not_reported_again() -> None:
    assert find_anomalies(TROUBLE["nan_loss"], reported={"nan_loss"}) == []


def test_every_anomaly_is_on_the_page_about_watching() -> None:
    page = (Path(__file__).parents[4] / "docs/explanation/how-trainings-are-watched.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [kind for kind in USUAL_REACTIONS if not any(f"`{kind}`" in row for row in rows)] == []


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=300))
def test_no_loss_curve_raises(values: list[float]) -> None:
    find_anomalies(Vitals(now=0.0, losses=losses(*values)))
