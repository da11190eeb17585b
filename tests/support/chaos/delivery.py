"""One job on machines in memory whose model goes to a Hub in memory, with workers that can be killed at any point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.flow.policy import Policy
from stationmaster.model import Access, Job, Registering, TrainedModel
from stationmaster.remote.base import Remote
from stationmaster.remote.fake_run import safetensors_bytes
from tests.support.chaos.fake import JOB, POLICY, SCRIPT, FakeStation, LiveMachine, Template
from tests.support.chaos.points import Point, Watched
from tests.support.policies import changed
from tests.support.servers.fake_hub import FakeComfyDeploy, FakeHub

DELIVERING = changed(POLICY, links=("hub",), comfydeploy={"api_key": SecretStr("key")}, limits={"fetch": 60.0})


class DeliveringStation(FakeStation):
    def __init__(self, template: Template, folder: Path, *, hub: FakeHub | None = None, policy: Policy = DELIVERING):
        super().__init__(template, folder, policy=policy)
        self.hub = hub or FakeHub()
        self.comfydeploy = FakeComfyDeploy()
        self.prepare: Callable[[LiveMachine], None] = lambda _machine: None

    def destinations(self, point: Point) -> Destinations:
        hub: Any = Watched(self.hub, "hub", point)
        comfydeploy: Any = Watched(self.comfydeploy, "comfydeploy", point)
        return Destinations(hub=hub, comfydeploy=comfydeploy)

    def job(self) -> Job:
        with self.store() as store:
            return store.jobs.get(JOB)

    def events(self, kind: str) -> list[Any]:
        with self.store() as store:
            return [event.payload for event in store.events.of_job(JOB) if event.kind == kind]

    def model(self) -> TrainedModel:
        with self.store() as store:
            (found,) = store.models.listed()
        return found

    def check_delivered(self) -> None:
        """Assert everything that holds after any crash of an upload that was not refused."""
        self.check()
        model = self.model()
        assert {place.kind for place in model.places} == {"home", "hub"}, model.places
        (commits,) = self.hub.repositories.values()
        assert [sorted(commit) for commit in commits] == [[f"{JOB}.safetensors"], ["README.md"]], "not once each"
        assert commits[0][model.file_name] == safetensors_bytes(SCRIPT.training_steps)
        assert len(self.comfydeploy.started) == 1
        assert model.registration.state in (Registering.STARTED, Registering.DONE)
        for kind in ("card_published", "catalogued", "outcome"):
            assert len(self.events(kind)) == 1, f"{kind} was told {len(self.events(kind))} times"

    def _connect(self, access: Access, *, point: Point) -> Remote:
        connection = super()._connect(access, point=point)
        for machine in self.machines.values():
            machine.trackside.uploader = self.hub.sent_by_machine
            self.prepare(machine)
        return connection


def delivery_points(names: list[str]) -> list[int]:
    """The points from the first word to the Hub until the outcome is written."""
    first = names.index("before hub.namespace")
    last = max(at for at, name in enumerate(names) if name.startswith("after comfydeploy"))
    return list(range(first - 3, last + 6))
