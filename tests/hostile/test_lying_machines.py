"""A machine caught at lies: what it has is fetched, the attempt counts as its fault, and it is not rented again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Desired, Outcome, Reason, State
from stationmaster.model.intake_limits import MIB
from tests.support.chaos.lied_to import SHORT, lied_to
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.machines.lying_machine import Lies, corrupt

NONSENSE: Lies = {"status": {"instead": "all is well"}}
TOO_LONG: Lies = {"status": {"set": {"padding": "x" * 3 * MIB}}}
BACKWARDS: Lies = {"status": {"set": {"log": [{"stream": "0.1", "start": 9, "end": 3, "data": "YWJj"}]}}}


@pytest.fixture
def station(tmp_path: Path, url: str, forge: StormForge, hold: Hold) -> StormStation:
    return hold(StormStation(tmp_path / "home", url, forge, **SHORT))


def failures(station: StormStation) -> list[str]:
    found = (event for event in station.store.events.of_job("job-1") if event.kind == "attempt_failed")
    return [str(event.payload["reason"]) for event in found]


def host_of_attempt(station: StormStation, attempt: int) -> str:
    """The host that is rented, as soon as it is chosen; the simulator's offers name it."""

    def found() -> str | None:
        offers = [one.offer for one in station.store.rentals.of_job("job-1") if one.attempt == attempt]
        return next((offer.machine_id for offer in offers if offer is not None), None)

    station.until(lambda: found() is not None, f"the machine of attempt {attempt}")
    return str(found())


@pytest.mark.parametrize("lies", [NONSENSE, TOO_LONG, BACKWARDS], ids=["nonsense", "too long", "backwards"])
def test_false_answers_during_the_training_end_the_attempt_and_the_host_is_avoided(
    tmp_path: Path, station: StormStation, lies: Lies
) -> None:
    lied_to(tmp_path, station, lies)
    station.until(lambda: station.job("job-1").attempt == 2, "a further attempt")
    assert failures(station) == [Reason.MACHINE_FAULT.value]
    kinds = [event.kind for event in station.store.events.of_job("job-1")]
    assert kinds.count("machine_fault") == 1
    assert "model_safe" in kinds, "what the machine had was not fetched first"
    assert host_of_attempt(station, 1) in station.store.bad_machines.avoided(station.job("job-1").spec.provider)
    assert host_of_attempt(station, 2) != host_of_attempt(station, 1)
    station.store.jobs.desire("job-1", Desired.CANCEL)
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    station.check()


def test_a_model_whose_hash_is_false_never_counts_and_another_machine_trains_it_again(
    tmp_path: Path, station: StormStation
) -> None:
    spec = storm_job("job-1", a_tiny_dataset(tmp_path / "dataset"), journal=station.journal, steps=30)
    station.submit(spec)
    station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    (machine,) = station.alive()
    lies = {"inventory": {"set": {"outputs": [_false_model()]}}}
    corrupt(tmp_path / "simulator" / "machines" / str(machine["id"]), lies)
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    ended = station.job("job-1")
    assert (ended.outcome, ended.attempt) == (Outcome.COMPLETED, 2)
    assert failures(station) == [Reason.MACHINE_FAULT.value]
    assert host_of_attempt(station, 1) in station.store.bad_machines.avoided(station.job("job-1").spec.provider)
    assert [event.kind for event in station.store.events.of_job("job-1")].count("file_false") == 1
    station.check()


def _false_model() -> dict[str, Any]:
    return {
        "path": "output/job-1.safetensors", "kind": "checkpoint", "size": 1112, "mtime": 1.0, "sha256": "0" * 64,
    }  # fmt: skip
