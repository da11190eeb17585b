"""The traps of a provider, by name: each meets a whole job, and the job, its machines and its bill come out right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from stationmaster.model import DatasetRef, Outcome, State
from stationmaster.simulator.harness import simulator_thread
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation, holding
from tests.support.servers.hub_server import reading_hub
from tests.support.vast.simulated_vast import API_KEY, quick_settings

TOKEN = "hf_secret_that_only_the_right_machine_gets"


@pytest.fixture(scope="module")
def simulator_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traps") / "simulator"


@pytest.fixture(scope="module")
def url(simulator_home: Path) -> Iterator[str]:
    with simulator_thread(quick_settings(simulator_home)) as url:
        yield url


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetRef:
    return a_tiny_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.fixture(scope="module")
def survivor(
    tmp_path_factory: pytest.TempPathFactory, url: str, forge: StormForge, dataset: DatasetRef
) -> Iterator[StormStation]:
    """Four jobs, each of which walked into a trap of its own, and a foreign installation's machine beside them."""
    with holding() as hold:
        station = hold(StormStation(tmp_path_factory.mktemp("survivor") / "home", url, forge))
        traps: dict[str, tuple[str, dict[str, object]]] = {
            "lost": ("lost_answer", {"operation": "create"}),
            "contract": ("error_with_contract", {}),
            "liar": ("lying_destroy", {"times": 3}),
        }
        for job_id, (kind, fields) in traps.items():
            station.customer.arm(kind, label=f"{station.label_prefix}{job_id}-1", **fields)
        station.customer.arm("deprecated_list", times=6)
        station.customer.rent_running(label="sm-neighbor-job-1")
        worker, sweeper = 0, station.start("sweeper")
        for job_id in traps:
            station.submit(storm_job(job_id, dataset, journal=station.journal, steps=8))
            worker = worker or station.start("worker")
            # One after the other, or they would race for the same offer.
            station.until(partial(_has_machine, station, job_id), "a machine")
        station.until(lambda: all(job.state is State.ENDED for job in station.jobs()), "the end of every job")
        station.until(lambda: not station.alive(), "the end of every machine")
        station.leave(sweeper)
        station.leave(worker)
        yield station


def test_a_lost_create_answer_leads_to_one_machine_that_is_used_and_paid(survivor: StormStation) -> None:
    assert [strike["kind"] for strike in survivor.struck()].count("lost_answer") == 1
    assert survivor.job("lost").outcome is Outcome.COMPLETED
    assert survivor.job("lost").attempt == 1
    assert len([machine for machine in survivor.truth() if "-lost-" in machine["label"]]) == 1


def test_an_error_that_rented_all_the_same_is_recorded_destroyed_and_paid(survivor: StormStation) -> None:
    refused, used = (rental for rental in survivor.store.rentals.of_job("contract"))
    assert refused.provider_id is not None
    assert refused.attempt == 1
    assert used.attempt == 2
    assert survivor.job("contract").outcome is Outcome.COMPLETED


def test_a_destroy_that_lies_is_asked_again_until_the_machine_is_gone(survivor: StormStation) -> None:
    assert [strike["kind"] for strike in survivor.struck()].count("lying_destroy") == 3
    assert survivor.job("liar").outcome is Outcome.COMPLETED


def test_the_dead_list_never_reads_as_gone(survivor: StormStation) -> None:
    assert [strike["kind"] for strike in survivor.struck()].count("deprecated_list") == 6
    survivor.check()


def test_a_second_installation_on_the_same_account_is_never_touched(survivor: StormStation) -> None:
    made = survivor.customer.http.get("/simulator/state").json()["instances"]
    (neighbour,) = (machine for machine in made if machine["label"] == "sm-neighbor-job-1")
    assert neighbour["exists"]
    assert neighbour["actual_status"] == "running"


def test_the_key_of_another_account_proves_nothing_about_our_machine(
    tmp_path: Path, url: str, forge: StormForge, dataset: DatasetRef, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge))
    station.customer.http.post("/simulator/accounts", json={"name": "other", "api_key": "other-key", "credit": 50})
    station.keep_training()
    station.submit(storm_job("job-1", dataset, journal=station.journal, steps=10))
    worker = station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    station.kill(worker, "worker")
    (machine,) = station.alive()
    station.customer.strike("ssh_refused", machine["id"])
    _use_key(station, "other-key")
    other = station.start("worker")
    station.until(lambda: station.job("job-1").unreachable_since is not None, "the silence")
    station.customer.end_strikes()
    station.until(lambda: station.job("job-1").unreachable_since is None, "the answer")
    station.leave(other)
    _use_key(station, API_KEY)
    station.let_finish()
    station.start("worker")
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    assert station.job("job-1").outcome is Outcome.COMPLETED
    assert [one["id"] for one in station.truth()] == [machine["id"]], "a second machine was rented"
    station.check()


def test_a_machine_that_shows_another_host_key_gets_no_secret(
    tmp_path: Path, url: str, simulator_home: Path, forge: StormForge, dataset: DatasetRef, hold: Hold
) -> None:
    with reading_hub(TOKEN) as hub:
        station = hold(StormStation(tmp_path / "home", url, forge, HF_TOKEN=TOKEN, STATIONMASTER_HUB__URL=hub.url))
        _meet_another_host_key(station, tmp_path, simulator_home, dataset)


def _meet_another_host_key(station: StormStation, tmp_path: Path, simulator_home: Path, dataset: DatasetRef) -> None:
    recipe = tmp_path / "home" / "recipes" / "storm" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("    timeout: 1h", "    secrets: [HF_TOKEN]\n    timeout: 1h"))
    first = f"{station.label_prefix}job-1-1"
    station.customer.arm("host_key_swapped", label=first)
    station.customer.arm("lying_destroy", label=first, times=100_000)
    station.submit(storm_job("job-1", dataset, journal=station.journal, steps=8))
    station.start("worker")
    failed = station.until(lambda: _events(station, "attempt_failed"), "the refusal")
    assert "host key" in failed[0]["explanation"]
    disk = simulator_home / "machines" / str(station.alive()[0]["id"])
    told = [path for path in disk.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert disk.is_dir()
    assert told == []
    assert not list(disk.rglob("trackside.pyz")), "something was sent before the host key was checked"
    station.customer.http.delete("/simulator/faults")
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    assert station.job("job-1").outcome is Outcome.COMPLETED
    assert station.job("job-1").attempt == 2


def _has_machine(station: StormStation, job_id: str) -> bool:
    return any(rental.provider_id for rental in station.store.rentals.of_job(job_id))


def _use_key(station: StormStation, key: str) -> None:
    address = station.home / "simulator" / "address.json"
    address.write_text(json.dumps({**json.loads(address.read_text()), "api_key": key}))


def _events(station: StormStation, kind: str) -> list[dict[str, str]]:
    return [dict(event.payload) for event in station.store.events.of_job("job-1") if event.kind == kind]
