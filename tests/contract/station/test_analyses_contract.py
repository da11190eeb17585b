"""The analysis of a job, as every face gets it: stored once when the training has ended, made anew on request."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.analysis.report import Health, Severity
from stationmaster.errors import NotFound
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.submitting import submit


def test_a_trained_job_has_an_analysis_that_was_stored_with_its_event(finished: LocalWorld) -> None:
    analysis = finished.station.analyses.of_job("done")
    assert (analysis.attempt, analysis.is_stored) == (1, True)
    report = analysis.report
    assert report.job_id == "done"
    assert report.summary.training_completed
    assert (report.summary.steps_completed, report.summary.total_steps) == (20, 20)
    assert report.health in (Health.GOOD, Health.WARNING)
    (event,) = [event for event in finished.station.events.of_job("done") if event.kind == "analysed"]
    assert event.payload["health"] == report.health.value
    assert event.payload["first"] == (report.first.title if report.first else None)
    view = finished.station.jobs.view("done")
    assert view.health is not None
    assert (view.health.health, view.health.attempt) == (report.health.value, 1)


def test_advice_names_the_recipe_s_parameters_with_their_values(finished: LocalWorld) -> None:
    advice = finished.station.analyses.of_job("done").report.recommendations
    own = [each for each in advice if each.config_path.startswith("parameters.")]
    parameters = finished.station.jobs.view("done").job.spec.parameters
    assert all(each.current_value == parameters[each.config_path.partition(".")[2]] for each in own)


def test_an_analysis_made_again_replaces_the_stored_one(finished: LocalWorld) -> None:
    before = finished.station.analyses.stored("done")
    again = finished.station.analyses.of_job("done", again=True)
    assert before is not None
    assert again.is_stored
    stored = finished.station.analyses.stored("done")
    assert stored is not None
    assert stored.created_at >= before.created_at
    assert stored.report.summary == again.report.summary == before.report.summary


def test_a_provider_without_offers_for_money_changes_nothing(finished: LocalWorld) -> None:
    with_offers = finished.station.analyses.of_job("done", with_offers=True)
    assert not with_offers.is_stored
    assert with_offers.report.summary == finished.station.analyses.of_job("done").report.summary


@every_station
def test_a_job_that_has_not_trained_has_no_analysis(world: LocalWorld) -> None:
    world.store.jobs.submit(spec("a"))
    assert world.station.analyses.stored("a") is None
    with pytest.raises(NotFound, match="has not trained") as caught:
        world.station.analyses.of_job("a")
    assert caught.value.hint
    with pytest.raises(NotFound, match="no job none"):
        world.station.analyses.of_job("none")


def test_an_exported_database_holds_the_analysis(finished: LocalWorld, tmp_path: Path) -> None:
    finished.station.metrics.export("done", tmp_path / "run.db")
    report = finished.station.analyses.of_job("done").report
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        rows = connection.execute(
            "SELECT job_id, summary, recommendations, log_errors, peak_memory_gb, health_score FROM AnalysisReport"
        ).fetchall()
    ((job_id, summary, recommendations, errors, peak, health),) = rows
    assert (job_id, peak, health) == ("done", report.summary.peak_memory_gb, report.health.value)
    assert json.loads(summary) == report.as_json()["summary"]
    assert json.loads(recommendations) == report.as_json()["recommendations"]
    assert json.loads(errors) == report.as_json()["log_errors"]


def test_a_training_that_went_wrong_is_diagnosed(world: LocalWorld, pictures: Path) -> None:
    wrong = {"fault": "oom", "fault_at": 5}
    submit(world.station, world.request(pictures, id="a", parameters=wrong))
    world.work_until_ended("a")
    stored = world.station.analyses.stored("a")
    assert stored is not None
    report = stored.report
    assert report.health is Health.CRITICAL
    assert report.first is not None
    assert report.first.severity is Severity.CRITICAL
    assert "memory" in report.first.title.lower()
    assert report.summary.training_completed is False
    assert sum(event.kind == "analysed" for event in world.station.events.of_job("a")) == 1


def test_nothing_is_analysed_where_a_job_switches_it_off(world: LocalWorld, pictures: Path) -> None:
    submit(world.station, world.request(pictures, id="a", monitoring={"analyze_on_complete": False}))
    world.work_until_ended("a")
    assert world.station.analyses.stored("a") is None
    assert world.station.jobs.view("a").health is None
    assert world.station.analyses.of_job("a").is_stored, "on request it is"
    assert world.station.jobs.view("a").health is not None
