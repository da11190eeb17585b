"""What every face may rely on, whatever the station is made of."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import (
    AlreadyEnded,
    ConfigInvalid,
    DatasetInvalid,
    IllegalMove,
    NotFound,
    UserError,
)
from stationmaster.model import Desired, State
from stationmaster.money import MicroDollars
from stationmaster.station.proposals import RetryRequest, TrainRequest
from stationmaster.station.users import UserChanges
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.submitting import submit


def test_a_preview_tells_all_and_writes_nothing(world: LocalWorld, pictures: Path) -> None:
    preview = world.station.proposals.check(world.request(pictures, name="cats", trigger="ohwx"))
    assert (preview.name, preview.recipe, preview.provider, preview.images) == ("cats", "tiny-lora@1", "loopback", 6)
    assert preview.parameters["steps"] == 20
    assert preview.parameters["rank"] == 8
    assert [step.name for step in preview.steps] == ["check", "train"]
    assert "--steps=20" in preview.steps[1].argv
    assert "--trigger=ohwx" in preview.steps[1].argv
    assert preview.quote.hours_low <= preview.quote.hours_expected <= preview.quote.hours_high
    assert preview.max_seconds >= preview.quote.hours_high * 3600
    assert world.station.jobs.listed(with_ended=True) == []
    assert not (world.folder / "home" / "datasets").exists()


BAD_REQUESTS: list[tuple[dict[str, Any], type[UserError], str]] = [
    ({"recipe": "tiny-laura@1"}, NotFound, "tiny-laura"),
    ({"recipe": "tiny-lora@99"}, NotFound, "99"),
    ({"recipe": ""}, UserError, ""),
    ({"dataset": Path("/nowhere/at/all")}, NotFound, "/nowhere/at/all"),
    ({"provider": "mars"}, ConfigInvalid, "mars"),
    ({"parameters": {"steps": "many"}}, UserError, "steps"),
    ({"parameters": {"steps": 0}}, UserError, "steps"),
    ({"parameters": {"stepps": 5}}, UserError, "stepps"),
    ({"id": "Not An Id"}, UserError, "Not An Id"),
    ({"id": "../../etc"}, UserError, "etc"),
    ({"id": ""}, UserError, "id"),
    ({"id": "-x"}, UserError, "-x"),
    ({"owner": "nobody"}, NotFound, "nobody"),
    ({"id": "x" * 41}, UserError, "id"),
    ({"name": "two\nlines"}, UserError, "name"),
    ({"name": "x" * 121}, UserError, "name"),
    ({"name": "  "}, UserError, "name"),
    ({"max_hours": 0}, UserError, "max"),
    ({"max_hours": -1}, UserError, "max"),
    ({"monitoring": {"gracePeriod": "soon"}}, ConfigInvalid, "gracePeriod"),
    ({"monitoring": {"unknown": 1}}, ConfigInvalid, "unknown"),
]


@pytest.mark.parametrize(("change", "error", "words"), BAD_REQUESTS)
def test_a_request_that_cannot_be_carried_out_is_refused_before_anything_is_written(
    untouched: LocalWorld, pictures: Path, change: dict[str, Any], error: type[UserError], words: str
) -> None:
    request = replace(untouched.request(pictures), **change)
    for ask in (untouched.station.proposals.check, untouched.station.proposals.propose):
        with pytest.raises(error) as caught:
            ask(request)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    assert untouched.station.jobs.listed(with_ended=True) == []


def test_a_dataset_that_would_waste_money_is_refused(world: LocalWorld, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DatasetInvalid):
        submit(world.station, world.request(empty))


@every_station
def test_a_job_is_queued_once_however_often_it_is_submitted(world: LocalWorld, pictures: Path) -> None:
    first = submit(world.station, world.request(pictures, id="mine"))
    again = submit(world.station, world.request(pictures, id="mine", parameters={"steps": 99}))
    assert (first.created, again.created) == (True, False)
    assert again.job == first.job
    assert first.job.state is State.QUEUED
    assert [event.kind for event in world.station.events.of_job("mine")] == ["submitted"]


def test_a_job_belongs_to_the_person_it_was_submitted_for(world: LocalWorld, pictures: Path) -> None:
    for name in ("ann", "me"):
        if name != "me":
            world.station.users.add(name, UserChanges(inbox=True))
        assert submit(world.station, world.request(pictures, id=name, owner=name)).job.spec.owner == name
    assert submit(world.station, world.request(pictures, id="mine")).job.spec.owner is None


def test_an_id_that_is_there_answers_even_when_its_dataset_has_gone(
    world: LocalWorld, pictures: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(pictures, moved)
    submit(world.station, world.request(moved, id="mine"))
    shutil.rmtree(moved)
    assert not submit(world.station, world.request(moved, id="mine")).created


def test_without_an_id_every_submission_is_a_job_of_its_own(world: LocalWorld, pictures: Path) -> None:
    ids = {submit(world.station, world.request(pictures)).job.id for _ in range(3)}
    assert len(ids) == 3
    assert {job.id for job in world.station.jobs.listed(with_ended=False)} == ids


@every_station
def test_the_newest_job_comes_first_and_no_more_than_asked(world: LocalWorld, pictures: Path) -> None:
    for name in ("a", "b", "c"):
        submit(world.local, world.request(pictures, id=name))
    assert [job.id for job in world.station.jobs.listed(with_ended=False, limit=2)] == ["c", "b"]


@every_station
def test_a_job_is_found_by_id_beginning_or_name_and_never_by_chance(world: LocalWorld, pictures: Path) -> None:
    for job_id, name in (("abc1", "one"), ("abc2", "two")):
        submit(world.local, world.request(pictures, id=job_id, name=name))
    assert world.station.jobs.find("abc1").id == "abc1"
    assert world.station.jobs.find("two").id == "abc2"
    with pytest.raises(NotFound, match="2 jobs"):
        world.station.jobs.find("abc")
    for nothing in ("", "x", "%", "abc11"):
        with pytest.raises(NotFound):
            world.station.jobs.find(nothing)


@pytest.mark.parametrize("verb", ["view", "remove", "stop"])
def test_a_job_that_is_not_there_is_not_found(untouched: LocalWorld, verb: str) -> None:
    asks: dict[str, Callable[[str], object]] = {
        "view": untouched.station.jobs.view,
        "remove": untouched.station.jobs.remove,
        "stop": lambda job_id: untouched.station.jobs.desire(job_id, Desired.STOP),
    }
    with pytest.raises(NotFound):
        asks[verb]("nobody")


@pytest.mark.parametrize("desired", [Desired.STOP, Desired.CANCEL, Desired.CANCEL_KEEP])
def test_a_queued_job_that_is_not_wanted_any_more_ends_without_a_machine(
    world: LocalWorld, pictures: Path, desired: Desired
) -> None:
    submit(world.local, world.request(pictures, id="mine"))
    wanted = world.station.jobs.desire("mine", desired)
    assert wanted.job.desired is desired
    assert wanted.note
    world.work_until_ended("mine")
    view = world.station.jobs.view("mine")
    assert (view.shown, view.rentals, view.cost) == ("CANCELLED", (), 0)
    with pytest.raises(AlreadyEnded, match="already CANCELLED"):
        world.station.jobs.desire("mine", Desired.STOP)


@every_station
def test_a_weaker_wish_after_a_cancel_is_told_what_really_follows(world: LocalWorld, pictures: Path) -> None:
    submit(world.local, world.request(pictures, id="mine"))
    cancelled = world.station.jobs.desire("mine", Desired.CANCEL)
    later = world.station.jobs.desire("mine", Desired.STOP)
    assert later.job.desired is Desired.CANCEL
    assert later.note == cancelled.note


def test_a_job_that_has_not_ended_is_neither_removed_nor_retried(world: LocalWorld, pictures: Path) -> None:
    submit(world.local, world.request(pictures, id="mine"))
    with pytest.raises(IllegalMove, match="has not ended"):
        world.station.jobs.remove("mine")
    with pytest.raises(IllegalMove, match="has not ended"):
        world.station.proposals.propose(RetryRequest(job="mine"))
    with pytest.raises(NotFound, match="no downloaded files yet"):
        world.station.artifacts.pull("mine", world.folder / "pulled")


def test_limits_that_are_asked_for_are_kept(world: LocalWorld, pictures: Path) -> None:
    request: TrainRequest = world.request(pictures, id="mine", max_hours=1.5, max_spend=MicroDollars(5))
    job = submit(world.station, request).job
    assert (job.spec.max_seconds, job.spec.max_spend) == (5400, 5)
