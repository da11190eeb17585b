"""When workers die for good the sweeper ends the bill and keeps the model. What the machine's own guard does then:
`test_outbid.py`."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from stationmaster.model import Outcome, State
from stationmaster.store.tables import jobs
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation


def gpu_bill(station: StormStation) -> float:
    return float(sum(machine["cost"]["gpu"] for machine in station.truth()))


def test_with_every_worker_dead_the_sweeper_alone_destroys_what_is_safe_and_stops_what_is_not_at_the_limit(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    """A later worker fetches the model of the one that was stopped."""
    station = hold(StormStation(tmp_path / "home", url, forge))
    dataset = a_tiny_dataset(tmp_path / "dataset")
    station.customer.arm("lying_destroy", label=f"{station.label_prefix}safe-1", times=100_000)
    station.keep_training()
    station.submit(storm_job("safe", dataset, journal=station.journal, steps=4))  # over before its first checkpoint
    worker = station.start("worker")
    station.until(lambda: station.alive(), "a machine")  # at the same time they would ask for the same offer
    station.submit(storm_job("unsafe", dataset, journal=station.journal, steps=10))
    station.until(lambda: station.job("safe").outcome is Outcome.COMPLETED, "the end of one training")
    station.until(lambda: station.store.checkpoints.of_job("unsafe"), "a first checkpoint of the other")
    station.kill(worker, "worker")
    station.customer.http.delete("/simulator/faults")
    assert len(station.alive()) == 2
    _reach_the_limits(station)
    sweeper = station.start("sweeper")
    station.until(lambda: [each["actual_status"] for each in station.alive()] == ["exited"], "the sweeper's work")
    assert station.alive()[0]["label"] == f"{station.label_prefix}unsafe-1"
    station.customer.advance(3600)
    billed = gpu_bill(station)
    station.customer.advance(3600)
    assert gpu_bill(station) == billed, "a stopped machine's GPU is billed"
    station.kill(sweeper, "sweeper")
    station.start("worker")
    station.until(lambda: all(job.state is State.ENDED for job in station.jobs()), "the end of the jobs")
    ended = station.job("unsafe")
    assert ended.outcome is Outcome.INCOMPLETE
    assert Path(ended.model.address or "").is_file(), "the model was lost"
    assert station.alive() == []
    station.check()


def _reach_the_limits(station: StormStation) -> None:
    """The jobs' hard limits have just passed, as if hours had."""
    with station.store.database.write() as connection:
        connection.execute(sa.update(jobs).values(deadline_at=station.store.now() - 1.0))
