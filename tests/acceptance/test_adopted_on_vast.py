"""Trainings that were started by hand on a rented Vast.ai machine: one is released at its end, one is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Outcome, State
from tests.support.jobs.hand_started import setup_words, shell_words
from tests.support.vast.simulator_service import Service, simulator_service

PLACES = ("--log", "~/run/logs/*.log", "--pid-file", "~/run/pid", "--output", "~/run/out")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("adopted")
    with simulator_service(folder, STATIONMASTER_WORKER__SWEEP="1s") as service:
        yield service


def rented(service: Service, *, waits_seconds: float) -> dict[str, Any]:
    """A machine that a person rented themselves, with their training on it."""
    with closing(service.customer()) as customer:
        started = setup_words('"$HOME/run"') + shell_words(waits_seconds=waits_seconds)
        return customer.rent_running(label="ann's machine", onstart=started)


def test_the_machine_is_destroyed_when_its_training_is_over_and_the_model_is_here(service: Service) -> None:
    instance = str(rented(service, waits_seconds=8.0)["id"])
    words = ("adopt", instance, *PLACES, "--release", "--id", "freed", "--yes")
    adopted = service.run(*words)
    assert adopted.returncode == 0, adopted.stderr
    assert "DESTROYED" in adopted.stdout
    assert "72h" in adopted.stdout
    service.until(lambda: service.job("freed").state is State.ENDED, "its end")
    job = service.job("freed")
    assert job.outcome is Outcome.COMPLETED, job.explanation
    assert service.alive() == []
    shown = service.answer("show", "freed", "--json")
    assert Path(shown["model"]).name == "cats.safetensors"
    assert shown["cost_usd"] > 0
    assert [rental["instance"] for rental in shown["rentals"]] == [instance]


def test_what_is_not_there_not_running_or_another_job_s_is_refused(service: Service) -> None:
    with closing(service.customer()) as customer:
        installations = (service.store.installation_id, "otherone")
        ours, theirs = (customer.rent_running(label=f"sm-{name}-job-1")["id"] for name in installations)
        bare = customer.rent_running(label="")["id"]
        stopped = customer.rent_running(label="")["id"]
        customer.put(stopped, state="stopped")
        customer.wait_for(stopped, "exited")
        for instance, said in (
            (999999, "there is no instance 999999"),
            (ours, "belongs to job job already"),
            (theirs, "belongs to another installation"),
            (stopped, "is stopped"),
            (bare, "no log on"),
        ):
            refused = service.run("adopt", str(instance), *PLACES, "--release", "--yes")
            assert refused.returncode != 0
            assert said in refused.stderr
        for instance in (ours, theirs, stopped, bare):
            customer.destroy(instance)
    assert service.answer("jobs", "--json") == []


def test_without_release_the_machine_and_its_label_stay(service: Service) -> None:
    instance = rented(service, waits_seconds=6.0)
    words = ("adopt", str(instance["id"]), *PLACES, "--id", "left", "--yes")
    adopted = service.run(*words)
    assert adopted.returncode == 0, adopted.stderr
    assert "goes on billing" in adopted.stdout
    service.until(lambda: service.job("left").state is State.ENDED, "its end")
    assert service.job("left").outcome is Outcome.COMPLETED
    shown = service.answer("show", "left", "--json")
    rate = shown["costs"][0]["rate_per_hour_micros"]
    assert rate == round(instance["dph_total"] * 1_000_000)
    assert 0 < shown["cost_usd"] < instance["dph_total"]
    with closing(service.customer()) as customer:
        seen = customer.read(instance["id"])
        assert seen is not None
        assert (seen["actual_status"], seen["label"]) == ("running", "ann's machine")
        customer.destroy(instance["id"])
