"""Someone presses Ctrl-C between the price and the job's id: either nothing is left, or they learn that a job is."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.cli.submitting import withdraw_if_left
from tests.support.jobs.local_world import LocalWorld, write_pictures


def test_before_the_job_is_queued_nothing_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalWorld(tmp_path) as world:
        proposal = world.station.proposals.propose(world.request(write_pictures(tmp_path / "pictures"), id="mine"))
        with pytest.raises(KeyboardInterrupt), withdraw_if_left(world.station, proposal):
            raise KeyboardInterrupt
        assert world.station.jobs.with_id("mine") is None
        assert list((world.folder / "home" / "datasets").glob("*.tar")) == []
    assert capsys.readouterr().err == ""


def test_after_it_the_job_is_named_and_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalWorld(tmp_path) as world:
        proposal = world.station.proposals.propose(world.request(write_pictures(tmp_path / "pictures"), id="mine"))
        job = world.station.proposals.submit(proposal.id).job
        with pytest.raises(KeyboardInterrupt), withdraw_if_left(world.station, proposal):
            raise KeyboardInterrupt
        assert world.station.jobs.with_id("mine") == job
        assert Path(job.spec.dataset.archive).is_file()
    assert capsys.readouterr().err == (
        "note: job mine is already queued\nhint: to cancel it, run stationmaster cancel mine\n"
    )
