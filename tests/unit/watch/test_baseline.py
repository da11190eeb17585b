"""Outliers against past runs of the same recipe and GPU."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.watch.baseline import RunFacts, find_outliers

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


@given(st.sampled_from(["recipe", "gpu"]), st.floats(min_value=0.1, max_value=1000))
def test_runs_of_other_recipes_and_gpus_are_no_history(field: str, seconds: float) -> None:
    odd = replace(USUAL, step_seconds=seconds, **{field: "another"})
    assert find_outliers(odd, PAST) == []
