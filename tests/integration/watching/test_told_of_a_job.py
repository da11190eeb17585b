"""What people are told of a job on its way, by a worker and a machine in memory: stages, heartbeats, the credit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from stationmaster.lifecycle import STAGES
from stationmaster.model import Desired, Event, JobSpec, Outcome, Reason
from stationmaster.station.jobs import JobView
from stationmaster.station.local.job_views import views_of
from stationmaster.station.wire.jobs import JobDocument
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.chaos.fake import JOB, SCRIPT, FakeStation, Template
from tests.support.chaos.paid_jobs import MOST, UNHURRIED, PaidStation, template
from tests.support.chaos.points import KillPoints

PACE = 5.0
SLOW = replace(SCRIPT, training_steps=80, seconds_per_step=10.0 * PACE, checkpoint_every=20)
"""More than an hour, of which the credits pay 24 minutes."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def unpaid(tmp_path_factory: pytest.TempPathFactory) -> FakeStation:
    """After a training whose credits were too few."""
    folder = tmp_path_factory.mktemp("unpaid")
    return ended_at_its_limit(PaidStation(template(folder / "made"), folder / "run", policy=UNHURRIED, script=SLOW))


def ended_at_its_limit(station: FakeStation) -> FakeStation:
    station.pace = PACE
    station.work(KillPoints())
    assert view_of(station).job.reason is Reason.HARD_LIMIT
    return station


def view_of(station: FakeStation) -> JobView:
    with station.store() as store:
        return views_of(store, [store.jobs.get(JOB)])[0]


def events_of(station: FakeStation) -> list[Event]:
    with station.store() as store:
        return list(store.events.of_job(JOB))


def stages_on_the_way(station: FakeStation, then: Callable[[str, Store], None] | None = None) -> list[str]:
    """The stage after every commit, each change once."""
    reading = Store(Database(f"sqlite:///{station.template.folder / 'live.db'}"))
    points, seen = KillPoints(), []

    def point(name: str) -> None:
        points(name)
        if name == "after COMMIT":
            seen.append(views_of(reading, [reading.jobs.get(JOB)])[0].stage)
            if then is not None:
                then(seen[-1], reading)

    seen.append(views_of(reading, [reading.jobs.get(JOB)])[0].stage)
    try:
        station.work(point)
    finally:
        reading.close()
    return [stage for stage, _ in groupby(seen)]


def test_a_job_that_completes_is_seen_in_each_of_the_ten_stages(made: Template, tmp_path: Path) -> None:
    station = FakeStation(made, tmp_path / "run")
    assert tuple(stages_on_the_way(station)) == STAGES
    assert view_of(station).job.outcome is Outcome.COMPLETED


def test_a_failed_job_never_comes_to_the_last_stage(made: Template, tmp_path: Path) -> None:
    crashing = replace(SCRIPT, exit_codes={("train", 1): 1}, fails_at=1)
    station = FakeStation(made, tmp_path / "run", script=crashing)
    stages = stages_on_the_way(station)
    assert view_of(station).job.outcome is Outcome.FAILED
    assert stages[-1] == "instance terminated"
    assert "completed" not in stages


def test_a_cancelled_job_ends_with_its_machine(made: Template, tmp_path: Path) -> None:
    station = FakeStation(made, tmp_path / "run")

    def cancel(stage: str, store: Store) -> None:
        if stage == "provisioned" and store.jobs.get(JOB).desired is Desired.RUN:
            store.jobs.desire(JOB, Desired.CANCEL)

    stages = stages_on_the_way(station, cancel)
    assert view_of(station).job.outcome is Outcome.CANCELLED
    assert stages[-1] == "instance terminated"


def test_an_ended_job_has_no_speed_no_eta_and_no_phase_in_any_document(made: Template, tmp_path: Path) -> None:
    station = FakeStation(made, tmp_path / "run")
    station.work(KillPoints())
    with station.store() as store:
        assert store.jobs.get(JOB).progress.steps_per_second is not None, "what it was is kept, for comparisons"
    view = view_of(station)
    told = JobDocument.of(view).progress
    assert (told.steps_per_second, told.eta_seconds, told.phase, told.active_step) == (None, None, None, None)
    assert (told.step, told.percent) == (SCRIPT.training_steps, 100.0)
    assert view.last_steps_per_second is not None


def test_the_progress_log_has_heartbeats_between_the_events(unpaid: FakeStation) -> None:
    document = JobDocument.of(view_of(unpaid), events_of(unpaid))
    beats = [entry for entry in document.progressLog if entry.kind == "heartbeat"]
    assert len(beats) > 3
    assert [entry.at for entry in document.progressLog] == sorted(entry.at for entry in document.progressLog)
    training = [beat.model_dump() for beat in beats if beat.model_dump()["step"] == "train"]
    percents = [beat["percent"] for beat in training if beat["percent"] is not None]
    assert percents == sorted(percents)
    assert any(beat["eta_seconds"] for beat in training)
    assert "left." in training[-1]["sentence"]
    assert document.progressLog[0].kind == "submitted"
    assert JobDocument.of(view_of(unpaid)).progressLog == ()


def anomalies(station: FakeStation) -> dict[str, str]:
    found = (event.payload for event in events_of(station) if event.kind == "anomaly")
    return {payload["anomaly"]: payload["evidence"] for payload in found}


def test_a_training_that_its_credits_do_not_pay_for_is_told_early(unpaid: FakeStation) -> None:
    assert view_of(unpaid).job.funding.hold == MOST
    assert anomalies(unpaid)["eta_beyond_credit"].endswith("in total; the credit is $0.14")
    assert "eta_beyond_hours" not in anomalies(unpaid), "the hours are not what stops it"


@pytest.mark.parametrize(("max_seconds", "expected"), [(2400.0, "eta_beyond_credit"), (1200.0, "eta_beyond_hours")])
def test_without_credits_the_limit_is_what_the_job_may_cost_or_take(
    max_seconds: float, expected: str, tmp_path: Path
) -> None:
    def prepare(store: Store, spec: JobSpec) -> None:
        store.jobs.submit(replace(spec, max_spend=MOST, max_seconds=max_seconds))

    made = Template(tmp_path / "made", prepare=prepare)
    station = ended_at_its_limit(FakeStation(made, tmp_path / "run", policy=UNHURRIED, script=SLOW))
    assert expected in anomalies(station)
