"""A run is compared with the store's rows of past ones: loudly with history, silently without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.control.flow.world import World
from stationmaster.control.results.run_facts import facts_to_remember
from stationmaster.control.states.executing.comparison import COMPARED_AT_PERCENT, compare, comparison_due
from stationmaster.model import Job, Progress, RentedMachine, StepReading, Watching
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import job, put_past_run

GIB_IN_MIB = 1024


@pytest.fixture
def world(store: Store, tmp_path: Path) -> Iterator[World]:
    made = World(
        store=store,
        providers={},
        connect=lambda _access: pytest.fail("nothing is connected to"),
        find_recipe=lambda _name: pytest.fail("no recipe is needed"),
        secrets=lambda _name: None,
        home=tmp_path,
        trackside=tmp_path,
    )
    yield made
    asyncio.run(made.close())


def trained(world: World, job_id: str, *, step_seconds: float, used_gib: float = 20.0, gpu: str = "RTX 4090") -> Job:
    """A job whose readings and samples are in the store as a worker would have put them there."""
    made = replace(job(job_id), progress=Progress(step=100, total_steps=100), attempt=1)
    sample = [0.0, 97.0, used_gib * GIB_IN_MIB, 24.0 * GIB_IN_MIB]
    watching = Watching(vitals={"gpus": [[sample] * 3]})
    made = replace(made, watching=watching, machine=RentedMachine(gpus=gpu))
    world.store.jobs.submit(made.spec)
    (lease,) = [one for one in world.store.leases.claim("w", limit=100, seconds=20) if one.job.id == job_id]
    readings = tuple(StepReading(attempt=1, at=step * step_seconds, step=step, loss=1 / step) for step in range(1, 101))
    world.store.leases.record(lease, Write(job=made, readings=readings))
    return made


def unusual(world: World, looked_at: Job) -> list[str]:
    found = asyncio.run(compare(looked_at, world))
    assert found is not None
    return [anomaly.evidence for anomaly in found.outliers]


def remember(world: World, count: int = 5) -> None:
    for number in range(count):
        past = trained(world, f"past-{number}", step_seconds=2.0 + 0.01 * number)
        facts = asyncio.run(facts_to_remember(past, world))
        assert facts is not None
        put_past_run(world.store, past.id, facts)


def test_the_peak_of_the_whole_run_is_remembered_for_later_estimates(world: World) -> None:
    past = trained(world, "past", step_seconds=2.0, used_gib=12.0)
    assert past.watching.vitals is not None
    peak = {"platform": "discrete", "gpu": [21.5, 24.0, 0]}  # before the last samples
    past = replace(past, watching=replace(past.watching, vitals={**past.watching.vitals, "memory": peak}))
    facts = asyncio.run(facts_to_remember(past, world))
    assert facts is not None
    assert (facts.memory_bytes, facts.peak_gpu_gib, facts.gpu_gib) == (12.0 * 1024**3, 21.5, 24.0)


def test_the_first_run_of_a_recipe_has_nothing_to_be_compared_with(world: World) -> None:
    assert unusual(world, trained(world, "now", step_seconds=99.0)) == []


def test_a_run_that_is_slower_and_takes_more_memory_than_usual_is_told_with_numbers(world: World) -> None:
    remember(world)
    found = unusual(world, trained(world, "now", step_seconds=5.0, used_gib=23.0 * 2))
    assert "step time is 5 s, usually 2.02 s in 5 runs of tiny-lora@1 on RTX 4090" in found
    assert any(text.startswith("GPU memory is 46 GiB, usually 20 GiB") for text in found)


def test_a_usual_run_is_not_told(world: World) -> None:
    remember(world)
    assert unusual(world, trained(world, "now", step_seconds=2.05)) == []


def test_another_gpu_has_its_own_history(world: World) -> None:
    remember(world)
    assert unusual(world, trained(world, "now", step_seconds=5.0, gpu="A100")) == []


def test_a_run_is_compared_a_few_times_on_its_way_and_not_at_every_look() -> None:
    due = []
    going = job("now")
    for step in range(1001):
        going = replace(going, progress=Progress(step=step, total_steps=1000))
        if (percent := comparison_due(going)) is not None:
            due.append(percent)
            going = replace(going, watching=Watching(compared=percent))
    assert due == list(COMPARED_AT_PERCENT)
