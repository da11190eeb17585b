"""A real run becomes one of those that later runs are compared with, and one unlike them is told."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from stationmaster.model import Event, Outcome
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.spine_values import put_past_run
from tests.support.jobs.submitting import submit

# Long beside the time of a look on a busy machine, so that there are enough looks to know the pace.
RUN = {"steps": 90, "seconds_per_step": 0.08, "save_every": 90, "sample_every": 90}


def finish(world: LocalWorld, pictures: Path, job_id: str) -> Sequence[Event]:
    """Train a job to its end; what was unusual in it."""
    submit(world.station, world.request(pictures, id=job_id, parameters=RUN))
    world.work_until_ended(job_id)
    assert world.station.jobs.view(job_id).job.outcome is Outcome.COMPLETED
    return [one for one in world.station.events.of_job(job_id) if one.payload.get("anomaly") == "baseline"]


def test_a_run_without_history_is_silent_and_one_slower_than_all_before_is_told(tmp_path: Path) -> None:
    pictures = write_pictures(tmp_path / "pictures")
    with LocalWorld(tmp_path, STATIONMASTER_MONITORING__POLL_INTERVAL="0.4") as world:
        assert finish(world, pictures, "first") == []
        with closing(Database(world.settings.store_url)) as database, closing(Store(database)) as store:
            (facts,) = store.runs.facts("tiny-lora@1", "no GPU")
            assert facts.step_seconds is not None
            assert facts.step_seconds > 0.05
            for number in range(5):  # no machine, however quick today, trains a thousand times faster tomorrow
                put_past_run(store, f"past-{number}", replace(facts, step_seconds=facts.step_seconds / 1000))
        told = [event.payload for event in finish(world, pictures, "second")]
    (slow,) = [payload for payload in told if "step time" in payload["evidence"]]
    assert "runs of tiny-lora@1 on no GPU" in slow["evidence"]
    assert slow["reaction"] == "note"
