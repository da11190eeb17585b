"""A worker dies at every recorded step of a delivery: the model is safe all the same, and nothing is told twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.errors import DeliveryBusy, DeliveryRefused
from stationmaster.model import Desired, Outcome, Reason, Registering
from stationmaster.remote.fake import ConnectionFault
from stationmaster.remote.fake_run import safetensors_bytes
from tests.support.chaos.delivery import DELIVERING, DeliveringStation, delivery_points
from tests.support.chaos.fake import JOB, SCRIPT, LiveMachine, Template
from tests.support.chaos.points import Killed, KillPoints, sampled
from tests.support.policies import changed
from tests.support.servers.fake_hub import STORE, FakeHub

SAMPLE_OR_ALL = ["sample", pytest.param("all", marks=pytest.mark.slow)]
FAR_TOO_MANY_POINTS = 1500


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def names(template: Template, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The points of a clean run."""
    station = DeliveringStation(template, tmp_path_factory.mktemp("points") / "clean")
    points = KillPoints()
    station.work(points)
    station.check_delivered()
    return points.names


def finish(station: DeliveringStation) -> None:
    station.let_leases_lapse()
    station.work(KillPoints(kill_at=FAR_TOO_MANY_POINTS))


@pytest.mark.parametrize("part", SAMPLE_OR_ALL)
def test_a_delivery_survives_the_death_of_its_worker_at_every_point(
    part: str, names: list[str], template: Template, tmp_path: Path
) -> None:
    points = delivery_points(names)
    chosen = sampled([names[at] for at in points], every=9) if part == "sample" else range(len(points))
    for at in (points[place] for place in chosen):
        station = DeliveringStation(template, tmp_path / str(at))
        with pytest.raises(Killed):
            station.work(KillPoints(kill_at=at))
        finish(station)
        try:
            station.check_delivered()
        except AssertionError as problem:
            raise AssertionError(f"killed at point {at}, {names[at]}: {problem}") from problem


def test_every_conversation_of_a_delivery_is_among_the_points(names: list[str]) -> None:
    chosen = {names[at] for at in delivery_points(names)}
    for edge in ("hub.ensure_repository", "hub.require", "remote.run", "remote.pull", "comfydeploy.start"):
        assert {f"before {edge}", f"after {edge}"} <= chosen


@pytest.mark.parametrize("problem", [DeliveryRefused("403"), DeliveryBusy("503")])
def test_what_the_hub_does_not_take_is_pulled_home_and_told(
    problem: DeliveryRefused | DeliveryBusy, template: Template, tmp_path: Path
) -> None:
    hub = FakeHub()
    hub.refuses = problem
    station = DeliveringStation(template, tmp_path / "run", hub=hub)
    station.work(KillPoints())
    station.check()
    assert [place.kind for place in station.model().places] == ["home"]
    assert [told["place"] for told in station.events("delivery_failed")] == ["hub", "hub from home"]
    tries = 1 if isinstance(problem, DeliveryRefused) else 3
    assert len([who for who in hub.uploads if who.startswith("machine")]) == tries
    assert station.model().registration.note == "not registered: not published"


def test_a_pause_longer_than_a_minute_gives_the_next_place_its_turn_at_once(template: Template, tmp_path: Path) -> None:
    hub = FakeHub()
    hub.refuses = DeliveryBusy("429", retry_after_seconds=300.0)
    station = DeliveringStation(template, tmp_path / "run", hub=hub)
    station.work(KillPoints())
    assert len([who for who in hub.uploads if who.startswith("machine")]) == 1


def test_what_the_machine_cannot_send_is_sent_from_home(template: Template, tmp_path: Path) -> None:
    hub = FakeHub()
    hub.refuses, hub.from_machine_only = DeliveryRefused("the machine has no way out"), True
    station = DeliveringStation(template, tmp_path / "run", hub=hub)
    station.work(KillPoints())
    station.check_delivered()
    assert [who for who in hub.uploads if who.startswith(f"home: {JOB}.safetensors")] != []


def test_a_machine_that_only_says_that_it_sent_the_model_is_not_believed(template: Template, tmp_path: Path) -> None:
    hub = FakeHub()
    hub.believes = False
    station = DeliveringStation(template, tmp_path / "run", hub=hub)
    station.work(KillPoints())
    station.check()
    assert station.events("delivery_failed")[0]["place"] == "hub"
    assert "://" not in station.events("model_safe")[0]["location"]


def test_a_private_model_without_a_bucket_says_why_it_is_not_registered(template: Template, tmp_path: Path) -> None:
    station = DeliveringStation(template, tmp_path / "run", hub=FakeHub(private=True))
    station.work(KillPoints())
    registration = station.model().registration
    assert (registration.state, registration.note) == (Registering.NO, "not registered: private, no bucket")
    assert station.comfydeploy.started == {}
    assert station.events("catalogued")[0]["note"] == "not registered: private, no bucket"


def test_a_model_that_is_safe_elsewhere_need_not_come_home(template: Template, tmp_path: Path) -> None:
    policy = changed(DELIVERING, artifacts={"keep_local": False, "every": 1.0})  # checkpoints come home while it trains
    station = DeliveringStation(template, tmp_path / "run", policy=policy)
    station.work(KillPoints())
    assert station.events("checkpoint_safe")
    (place,) = station.model().places
    with station.store() as store:
        (safe,) = [one.location for one in store.checkpoints.of_job(JOB) if one.verified_at]
    assert safe == place.address
    assert (station.job().outcome, place.kind) == (Outcome.COMPLETED, "hub")
    assert station.job().model.address == place.address
    assert not list((tmp_path / "run" / "home" / "jobs").rglob("*.safetensors"))


def test_a_service_that_is_down_keeps_no_job_waiting(template: Template, tmp_path: Path) -> None:
    station = DeliveringStation(template, tmp_path / "run")
    station.comfydeploy.problem = DeliveryBusy("503")
    station.work(KillPoints())
    registration = station.model().registration
    assert station.job().outcome is Outcome.COMPLETED
    assert (registration.state, registration.tries, registration.note) == (Registering.DUE, 1, "503")
    assert station.events("registration")[0]["note"] == "503"


def test_what_is_only_to_be_kept_is_not_published(names: list[str], template: Template, tmp_path: Path) -> None:
    """`cancel --keep` while the results are fetched: the model comes home, and nowhere else."""
    station = DeliveringStation(template, tmp_path / "run")
    with pytest.raises(Killed):
        station.work(KillPoints(kill_at=names.index("before hub.namespace")))
    with station.store() as store:
        store.jobs.desire(JOB, Desired.CANCEL_KEEP)
    finish(station)
    assert station.job().outcome is Outcome.CANCELLED
    assert [place.kind for place in station.model().places] == ["home"]
    assert station.hub.uploads == []


def test_with_everything_down_the_hard_limit_ends_it_only_after_a_pull_was_tried_and_nobody_came(
    template: Template, tmp_path: Path
) -> None:
    pulled = points_until_a_pull(template, tmp_path)
    hub = FakeHub()
    hub.refuses = DeliveryRefused("403")
    hurried = changed(DELIVERING, limits={"fetch": 60.0, "closing": 30.0}, sweep={"abandon_after": 120.0})
    station = DeliveringStation(template, tmp_path / "run", hub=hub, policy=hurried)
    station.prepare = no_file_comes_through
    with pytest.raises(Killed):
        station.work(KillPoints(kill_at=pulled))
    station.clock.advance(40_000)  # past the job's own limit
    assert station.job().outcome is None
    finish(station)
    assert (station.job().outcome, station.job().reason) == (Outcome.FAILED, Reason.FETCH_FAILED)
    assert "its model is lost" in str(station.job().explanation)
    assert len(station.events("machine_parked")) == 1
    assert station.provider.machines == {}
    assert sum(call[0] == "pull" for machine in station.machines.values() for call in machine.remote.calls) >= 1


def test_a_signed_address_is_in_no_memory_event_or_row(template: Template, tmp_path: Path) -> None:
    hub = FakeHub()
    hub.refuses = DeliveryRefused("403")
    station = DeliveringStation(template, tmp_path / "run", hub=hub)
    station.work(KillPoints())
    assert STORE in hub.orders[0]["requests"][0]["url"]
    for path in template.folder.glob("live.db*"):
        assert STORE.encode() not in path.read_bytes()


def no_file_comes_through(machine: LiveMachine) -> None:
    machine.remote.heal()
    machine.remote.fail(ConnectionFault.CUT_BEFORE, times=None, only="pull")


def points_until_a_pull(template: Template, folder: Path) -> int:
    """When a worker that cannot pull has tried it once."""
    hub = FakeHub()
    hub.refuses = DeliveryRefused("403")
    station = DeliveringStation(template, folder / "looking", hub=hub)
    points = KillPoints()
    station.work(points)
    assert station.model().size == len(safetensors_bytes(SCRIPT.training_steps))
    return points.names.index("after remote.pull") + 1
