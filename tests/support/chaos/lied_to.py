"""A job in the middle of its training on a rented machine that begins to lie, and what the provider bills for it."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from stationmaster.store.tables import jobs
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import StormStation
from tests.support.machines.lying_machine import Lies, corrupt

FETCH_SECONDS, CLOSING_SECONDS = 6.0, 30.0
BOUND_SECONDS = FETCH_SECONDS + CLOSING_SECONDS
SHORT = {
    "STATIONMASTER_LIMITS__FETCH": f"{FETCH_SECONDS}s",
    "STATIONMASTER_LIMITS__CLOSING": f"{CLOSING_SECONDS}s",
    "STATIONMASTER_SSH__ANSWER": "5s",
}
ALWAYS_MORE: Lies = {"status": {"set": {"more": True, "finished": None}}}
DEAF: Lies = {"stop": {"as": "status"}}
RUDE: Lies = {"stop": {"instead": "no"}}
SILENT: Lies = {"inventory": {"sleep": 600}, "stop": {"sleep": 600}}


def lied_to(tmp_path: Path, station: StormStation, lies: Lies, **policy: float) -> Path:
    """A job in the middle of its training, on a machine that begins to lie; the job's folder there."""
    station.submit(storm_job("job-1", a_tiny_dataset(tmp_path / "dataset"), journal=station.journal, steps=3000))
    station.start("worker", **policy)
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    (machine,) = station.alive()
    return corrupt(tmp_path / "simulator" / "machines" / str(machine["id"]), lies)


def billed_seconds(station: StormStation) -> float:
    """How long the simulator has billed for GPUs so far."""
    return float(sum(machine["gpu_seconds"] for machine in station.truth()))


def bills_no_more(station: StormStation) -> bool:
    return all(not machine["exists"] or machine["actual_status"] == "exited" for machine in station.truth())


def reach_the_limit(station: StormStation) -> None:
    """The job's hard limit has just passed, as if hours had.

    A worker that read the job before writes the old limit again with the rest of it; the trigger lets the new one stay.
    """
    now = station.store.now()
    stays = f"""CREATE TRIGGER limit_is_reached AFTER UPDATE ON jobs WHEN NEW.id = 'job-1' AND NEW.deadline_at > {now!r}
        BEGIN UPDATE jobs SET deadline_at = {now!r} WHERE id = NEW.id; END"""
    with station.store.database.write() as connection:
        connection.execute(sa.text(stays))
        connection.execute(sa.update(jobs).where(jobs.c.id == "job-1").values(deadline_at=now))
