"""Outliers against past runs of the same recipe and GPU."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.model import StepReading
from stationmaster.watch.anomalies.base import GpuSample
from stationmaster.watch.baseline import RunFacts, facts_of, find_outliers

GIB = 2.0**30
USUAL = RunFacts(
    recipe="flux-lora@1",
    gpu="RTX 4090",
    step_seconds=2.0,
    memory_bytes=20 * GIB,
    gpu_percent=96.0,
    loss_by_progress=((0.1, 0.5), (0.5, 0.4), (1.0, 0.3)),
)
PAST = [replace(USUAL, step_seconds=2.0 + 0.02 * n, memory_bytes=(20 + 0.1 * n) * GIB) for n in range(-2, 3)]


def test_a_run_like_the_others_is_no_outlier() -> None:
    assert find_outliers(USUAL, PAST) == []


def test_a_slow_run_is_told_with_its_numbers() -> None:
    found = find_outliers(replace(USUAL, step_seconds=3.4), PAST)
    assert [anomaly.kind for anomaly in found] == ["baseline"]
    assert "step time is 3.4 s, usually 2 s in 5 runs of flux-lora@1 on RTX 4090" in found[0].evidence


def test_memory_use_of_the_gpu_and_loss_are_compared_as_well() -> None:
    odd = replace(USUAL, memory_bytes=30 * GIB, gpu_percent=40.0, loss_by_progress=((0.1, 0.5), (0.75, 0.9)))
    evidence = " ".join(anomaly.evidence for anomaly in find_outliers(odd, PAST))
    assert "GPU memory is 30 GiB" in evidence
    assert "GPU use is 40 %" in evidence
    assert "loss at 75 % is 0.9, usually 0.35" in evidence


def test_better_than_usual_is_no_trouble() -> None:
    assert find_outliers(replace(USUAL, step_seconds=0.5, memory_bytes=8 * GIB), PAST) == []


def test_two_runs_are_no_history() -> None:
    assert find_outliers(replace(USUAL, step_seconds=9.0), PAST[:2]) == []


@given(
    st.sampled_from([replace(USUAL, recipe="another"), replace(USUAL, gpu="another")]),
    st.floats(min_value=0.1, max_value=1000),
)
def test_runs_of_other_recipes_and_gpus_are_no_history(other: RunFacts, seconds: float) -> None:
    assert find_outliers(replace(other, step_seconds=seconds), PAST) == []


def read(at: float, step: int, loss: float | None = None) -> StepReading:
    return StepReading(attempt=1, at=at, step=step, loss=loss)


def facts(readings: list[StepReading], *gpus: list[GpuSample], total_steps: int = 100) -> RunFacts:
    return facts_of(readings, gpus, recipe="r@1", gpu="RTX 4090", total_steps=total_steps)


@given(st.floats(min_value=0.01, max_value=100), st.integers(min_value=1, max_value=20), st.integers(20, 60))
def test_the_pace_is_found_whether_steps_are_read_one_by_one_or_many_at_a_time(
    seconds: float, together: int, looks: int
) -> None:
    readings = [
        read(look * together * seconds, look * together - back) for look in range(1, looks) for back in range(together)
    ]
    found = facts(readings, total_steps=2000).step_seconds
    assert found is not None
    assert abs(found - seconds) < 1e-6 * seconds


def test_pauses_for_saving_are_not_the_pace() -> None:
    readings = [read(step * 2.0 + 60.0 * (step // 25), step) for step in range(1, 101)]
    assert facts(readings).step_seconds == 2.0


def test_a_few_steps_tell_no_pace() -> None:
    assert facts([read(float(step), step) for step in range(5)]).step_seconds is None


def test_the_loss_becomes_a_short_curve_without_what_is_no_number() -> None:
    readings = [read(float(step), step, math.nan if step % 7 == 0 else 1.0 - step / 200) for step in range(1, 1001)]
    curve = facts(readings, total_steps=1000).loss_by_progress
    assert len(curve) == 20
    assert [part for part, _ in curve] == sorted(part for part, _ in curve)
    assert all(abs(loss - (1.0 - 5 * part)) < 0.01 for part, loss in curve)


def test_the_most_memory_and_the_usual_load_of_all_gpus_are_kept() -> None:
    samples = [GpuSample(at=n, utilization_percent=90.0 + n, memory_used_bytes=n * GIB) for n in range(5)]
    found = facts([], samples, [GpuSample(at=0.0, memory_used_bytes=9 * GIB)])
    assert (found.memory_bytes, found.gpu_percent) == (9 * GIB, 92.0)


def test_each_subject_is_told_under_its_own_name() -> None:
    odd = replace(USUAL, step_seconds=9.0, memory_bytes=40 * GIB)
    assert [one.name for one in find_outliers(odd, PAST)] == ["baseline (step time)", "baseline (GPU memory)"]
