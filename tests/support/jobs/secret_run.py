"""Runs one whole job in a separate process, with every possible secret, and keeps a copy of its machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from stationmaster.cli.logging import service_logging
from stationmaster.config import load_settings
from stationmaster.control.publishing.registering import continue_registrations
from stationmaster.control.wiring.build import build_world
from stationmaster.control.worker.worker import Worker
from stationmaster.model import State
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import TrainRequest
from tests.support.jobs.submitting import submit
from tests.support.policies import changed


class Photographed:
    """A provider whose machines' files are copied before they are destroyed."""

    def __init__(self, inner: Any, machines: Path, copies: Path) -> None:
        self._inner = inner
        self._machines = machines
        self._copies = copies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def destroy(self, provider_id: str) -> None:
        shutil.copytree(self._machines, self._copies, dirs_exist_ok=True, symlinks=True)
        await self._inner.destroy(provider_id)


async def work(station: LocalStation, folder: Path) -> None:
    world = build_world(station.settings, os.environ, station.store)
    world.policy = changed(world.policy, provider_look_seconds=0.1, retry_seconds=(0.1,), comfydeploy={"retry": 0.1})
    photographed: Any = Photographed(
        world.providers["loopback"], station.settings.home / "machines", folder / "machine"
    )
    world.providers["loopback"] = photographed
    worker = Worker(world)
    running = asyncio.create_task(worker.run())
    while (await asyncio.to_thread(station.jobs.view, "secret")).job.state is not State.ENDED:
        assert not running.done(), running
        tripped = [alert.message for alert in station.store.alerts.open() if alert.kind == "internal_error"]
        assert not tripped, tripped
        await asyncio.sleep(0.05)
    while await asyncio.to_thread(station.store.models.count_to_register):
        await continue_registrations(world)
        await asyncio.sleep(0.1)
    worker.leave()
    await running
    await world.close()


def main() -> None:
    folder = Path(sys.argv[1])
    service_logging("DEBUG")
    station = LocalStation(load_settings(os.environ, folder=folder), os.environ)
    parameters = {"steps": 20, "seconds_per_step": 0, "save_every": 10, "sample_every": 20}
    submit(
        station,
        TrainRequest(
            recipe="tiny-lora@1", dataset=folder / "pictures", parameters=parameters, trigger="ohwx", id="secret"
        ),
    )
    asyncio.run(work(station, folder))
    print(station.jobs.view("secret").job.outcome)
    station.close()


if __name__ == "__main__":
    main()
