"""A trainer that prints what nobody knows is watched by the patterns of its recipe, or of the settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stationmaster.model import Outcome
from tests.support.jobs.recipe_jobs import MODEL, RecipeWorld, scripted

TICK = r"tick (?P<step>\d+) of (?P<total_steps>\d+) cost (?P<loss>\S+)"
SETTING = json.dumps([{"pattern": TICK}])
TRAIN = f"for at in 1 2 3; do echo tick $at of 3 cost 0.$at; sleep 0.2; done\n{MODEL}"


@pytest.mark.parametrize(("place", "is_watched"), [("recipe", False), ("settings", True)])
def test_the_worker_reads_by_the_patterns_polled_and_streamed(tmp_path: Path, place: str, is_watched: bool) -> None:
    more = f"log_patterns: [{{pattern: '{TICK}'}}]\n" if place == "recipe" else ""
    environ = {"STATIONMASTER_LOGS__PATTERNS": SETTING} if place == "settings" else {}
    with RecipeWorld(tmp_path, scripted(TRAIN, more=more), **environ) as world:
        job_id = world.submit(id="ticks")
        if is_watched:
            world.store.watchers.register(job_id, "me", seconds=600)
        world.work_until_ended(job_id)
        job = world.station.jobs.view(job_id).job
        steps = [(reading.step, reading.loss) for reading in world.station.readings.of_job(job_id)]
    assert job.outcome is Outcome.COMPLETED
    assert (job.progress.step, job.progress.total_steps, job.progress.loss) == (3, 3, 0.3)
    assert steps[-1] == (3, 0.3)
