"""A place that never answers does not use up the time of a job that is to end: its model is pulled home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.signed_requests import Source
from stationmaster.errors import DeliveryBusy
from stationmaster.model import Desired, Outcome
from stationmaster.remote.fake_run import safetensors_bytes
from tests.support.chaos.delivery import DELIVERING, DeliveringStation
from tests.support.chaos.fake import JOB, SCRIPT, Template
from tests.support.chaos.points import KillPoints
from tests.support.policies import changed
from tests.support.servers.fake_hub import FakeHub

HURRIED = changed(DELIVERING, limits={"fetch": 2.0, "closing": 90.0})


class HangingHub(FakeHub):
    """It asks for patience once, and a person loses theirs; from then on it never answers."""

    stop: Callable[[], None]

    async def put_from(self, repo: str, file: HubFile, source: Source, *, message: str) -> HubFile:
        self.uploads.append(message)
        if len(self.uploads) == 1:
            self.stop()
            raise DeliveryBusy("later")
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


@pytest.fixture
def template(tmp_path: Path) -> Template:
    return Template(tmp_path / "template")


def test_after_a_stop_a_hub_that_hangs_leaves_time_for_the_pull_home(template: Template, tmp_path: Path) -> None:
    hub = HangingHub()
    station = DeliveringStation(template, tmp_path / "run", hub=hub, policy=HURRIED)

    def stop() -> None:
        with station.store() as store:
            store.jobs.desire(JOB, Desired.STOP)

    hub.stop = stop
    station.work(KillPoints())
    ended = station.job()
    assert ended.outcome is Outcome.COMPLETED, "its training was done before the stop came"
    assert Path(ended.model.address or "").read_bytes() == safetensors_bytes(SCRIPT.training_steps)
    assert {"place": "hub", "problem": "timed out"} in station.events("delivery_failed")
    by_machine = [message for message in hub.uploads if not message.startswith("home")]
    assert len(by_machine) == 2, "busy once, hung once"
