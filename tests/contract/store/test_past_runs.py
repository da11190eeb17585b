"""What finished runs looked like is kept by recipe and GPU, and a long run is read in bounded pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stationmaster.model import StepReading
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from stationmaster.watch.baseline import RunFacts
from tests.support.jobs.spine_values import put_past_run, spec

FACTS = RunFacts(
    recipe="flux-lora@1",
    gpu="RTX 4090",
    step_seconds=2.0,
    memory_bytes=2.0e10,
    gpu_percent=97.5,
    loss_by_progress=((0.1, 0.5), (0.9, 0.25)),
)


def test_a_run_is_found_again_by_its_recipe_and_gpu_alone(store: Store) -> None:
    put_past_run(store, "a", FACTS)
    put_past_run(store, "b", replace(FACTS, gpu="A100"))
    put_past_run(store, "c", replace(FACTS, recipe="sdxl-lora@1"))
    assert store.runs.facts("flux-lora@1", "RTX 4090") == [FACTS]
    assert store.runs.facts("flux-lora@2", "RTX 4090") == []


def test_a_job_counts_once_however_often_it_is_written_down(store: Store) -> None:
    for seconds in (1.0, 2.0):
        put_past_run(store, "a", replace(FACTS, step_seconds=seconds))
    assert [run.step_seconds for run in store.runs.facts("flux-lora@1", "RTX 4090")] == [2.0]


def test_only_the_latest_runs_are_history(open_store: Callable[..., Store]) -> None:
    for seconds in (3.0, 1.0, 2.0):
        store = open_store(later=100.0 * seconds)
        put_past_run(store, f"job-{seconds:g}", replace(FACTS, step_seconds=seconds))
    found = [run.step_seconds for run in store.runs.facts("flux-lora@1", "RTX 4090", limit=2)]
    assert found == [3.0, 2.0]


def test_an_attempt_is_sampled_evenly_and_within_bounds(store: Store) -> None:
    for job_id in ("a", "b"):
        store.jobs.submit(spec(job_id))
    leases = store.leases.claim("w", limit=2, seconds=20)
    for lease in leases:
        readings = tuple(
            StepReading(attempt=1 + step // 300, at=float(step), step=step, loss=1.0) for step in range(600)
        )
        store.leases.record(lease, Write(job=lease.job, readings=readings))
    steps = [reading.step for reading in store.readings.sampled("a", attempt=2, most=100)]
    assert steps == list(range(300, 600, 3))
    assert len(store.readings.sampled("a", attempt=1)) == 300
    assert store.readings.sampled("a", attempt=3) == []
