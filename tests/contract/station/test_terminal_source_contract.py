"""The terminal app on every kind of station: what it lists, shows and does."""

from __future__ import annotations

import pytest

from stationmaster.errors import IllegalMove, NotFound
from stationmaster.model import Desired, State
from stationmaster.tui.lines import text_of
from stationmaster.tui.sources.base import Action
from stationmaster.tui.sources.jobs import JobsSource
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.servers.live_bench import WrittenJob


@every_station
def test_a_running_job_is_listed_shown_searched_and_stopped(world: LocalWorld) -> None:
    job = WrittenJob(world.store, "cats")
    job.write_events(3, kind="odd")
    job.write_log(b"Step 1\nStep 2, \x1b[31mloss nan\x1b[0m\n", b"100%|###| 1/2\r100%|###| 2/2")
    job.write_readings(0.5, 0.25)
    source = JobsSource(world.station, title="Trainings", look_seconds=600.0)
    view = source.next(seconds=1.0)
    assert view is not None
    (row,) = view.rows
    assert row.id == "cats"
    assert view.summary.total == 1
    assert source.next(seconds=0.0) is None, "not again at once"
    detail = source.detail("cats", width=100)
    log = [text_of(line) for line in detail.tabs["Log"]]
    assert log == ["Step 1", "Step 2, loss nan", "100%|###| 2/2"]
    assert len(detail.tabs["Events"]) == len(world.store.events.of_job("cats"))
    assert list(detail.tabs) == ["Log", "Events", "Checkpoints", "Cost", "Advice"]
    assert [text_of(line).split()[1:3] for line in source.search_log("cats", "LOSS")] == [["Step", "2,"]]
    question = source.question("cats", Action.STOP)
    assert question is not None
    assert "Stop" in question.text
    source.perform("cats", Action.STOP)
    stored = world.store.jobs.get("cats")
    assert stored is not None
    assert stored.desired is Desired.STOP
    with pytest.raises(NotFound, match="no machine"):
        source.perform("cats", Action.SSH)


def test_an_ended_job_refuses_actions_and_an_unknown_one_is_said(world: LocalWorld) -> None:
    WrittenJob(world.store, "over").end()
    source = JobsSource(world.station, title="Trainings")
    with pytest.raises(IllegalMove):
        source.question("over", Action.STOP)
    with pytest.raises(NotFound):
        source.detail("nothing", width=80)
    job = world.store.jobs.get("over")
    assert job is not None
    assert job.state is State.ENDED
