"""Machines caught at lies: what they have is fetched, each attempt counts as their fault, and none is rented again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stationmaster.model import Outcome, Reason, State
from tests.support.chaos.lied_to import SHORT
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.machines.lying_machine import Lies, corrupt

BACKWARDS: Lies = {"status": {"set": {"log": [{"stream": "0.1", "start": 9, "end": 3, "data": "YWJj"}]}}}


def kinds(station: StormStation) -> list[str]:
    return [event.kind for event in station.store.events.of_job("job-1")]


def corrupt_attempt(station: StormStation, machines: Path, attempt: int, lies: Lies) -> str:
    """The machine of this attempt lies once it has saved something; its host, as the simulator's offers name it."""

    def saved() -> bool:
        return any(one.attempt == attempt for one in station.store.checkpoints.of_job("job-1"))

    station.until(saved, f"a checkpoint of attempt {attempt}")
    (rental,) = [one for one in station.store.rentals.of_job("job-1") if one.attempt == attempt]
    corrupt(machines / str(rental.provider_id), lies)
    assert rental.offer is not None
    return str(rental.offer.machine_id)


def test_a_false_answer_and_a_false_model_end_their_attempts_and_a_third_machine_trains_the_model(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **SHORT))
    machines = tmp_path / "simulator" / "machines"
    station.keep_training()
    station.submit(storm_job("job-1", a_tiny_dataset(tmp_path / "dataset"), journal=station.journal, steps=10))
    station.start("worker")
    first = corrupt_attempt(station, machines, 1, BACKWARDS)
    station.until(lambda: station.job("job-1").attempt == 2, "a second attempt")
    assert kinds(station).count("machine_fault") == 1
    assert "model_safe" in kinds(station), "what the machine had was not fetched first"
    second = corrupt_attempt(station, machines, 2, {"inventory": {"set": {"outputs": [_false_model()]}}})
    station.let_finish()
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    ended = station.job("job-1")
    assert (ended.outcome, ended.attempt) == (Outcome.COMPLETED, 3), ended.explanation
    events = station.store.events.of_job("job-1")
    failures = [event.payload["reason"] for event in events if event.kind == "attempt_failed"]
    assert failures == [Reason.MACHINE_FAULT, Reason.MACHINE_FAULT]
    assert kinds(station).count("file_false") == 1
    offers = [rental.offer for rental in station.store.rentals.of_job("job-1")]
    assert len({offer.machine_id for offer in offers if offer is not None}) == 3, "a liar was rented again"
    assert {first, second} <= set(station.store.bad_machines.avoided(ended.spec.provider))
    station.check()


def _false_model() -> dict[str, Any]:
    return {
        "path": "output/job-1.safetensors", "kind": "checkpoint", "size": 1112, "mtime": 1.0, "sha256": "0" * 64,
    }  # fmt: skip
