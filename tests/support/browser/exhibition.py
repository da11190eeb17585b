"""A home with convincing data for looking at the page: trainings in many states, machines, models, costs of some days.

    with exhibition(folder) as opened:
        opened.url, opened.token

Nothing in it was trained: rows are written as workers would have written them, and served by the real service. There is
no worker, so nothing moves. Its machines are those of a simulator, one of which belongs to no job.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.config import load_settings
from stationmaster.control.wiring.simulator_address import write_simulator_address
from stationmaster.datasets.pack import pack_into
from stationmaster.datasets.sample_set import write_sample_set
from stationmaster.model import DatasetRef, Label, Note, Role, State
from stationmaster.simulator.clock import Clock
from stationmaster.simulator.harness import simulator_thread
from stationmaster.station.local.station import LocalStation
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.browser.exhibited_history import asked_at
from tests.support.browser.exhibited_job import Hanging
from tests.support.browser.exhibits import EXHIBITS
from tests.support.servers.serve_process import served
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings

_PICTURES = 24
_OLDEST_MACHINE_SECONDS = 3 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibition:
    """A served exhibition; `link` signs in once, `token` always."""

    url: str
    link: str
    token: str
    home: Path


@contextmanager
def exhibition(folder: Path) -> Iterator[Exhibition]:
    """Build it in an empty folder and serve it while the block lasts."""
    home = folder / "home"
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "STATIONMASTER_HOME": str(home)}
    environ["STATIONMASTER_PROVIDER"] = "simulator"
    clock = Clock(lambda: time.time() - _OLDEST_MACHINE_SECONDS)
    with simulator_thread(quick_settings(home / "simulator", backend="paper"), clock=clock) as market:
        write_simulator_address(home, url=market, api_key=API_KEY, rate_limit_scale=0.0)
        with closing(LocalStation(load_settings(environ, folder=folder), environ)) as station:
            machines = rent(market, clock, station.store.installation_id)
            token = build(station, machines)
        with served(home, PROVIDER="simulator") as server:
            assert server.link is not None
            yield Exhibition(url=server.url, link=server.link, token=token, home=home)


def rent(market: str, clock: Clock, installation: str) -> dict[str, str]:
    """Machines by exhibit, as long ago as their trainings began, and one of hours ago that no training explains."""
    running = [exhibit for exhibit in EXHIBITS if exhibit.state in (State.EXECUTING, State.TRANSFERRING_DATA)]
    found = {}
    with closing(Customer(market)) as customer:
        customer.rent(label=str(Label(installation=installation, job="old-idea-2b5c", attempt=1)))
        for exhibit in sorted(running, key=lambda each: asked_at(each, now=0.0)):
            clock.advance(max(0.0, asked_at(exhibit, now=time.time()) - clock.now()))
            offers = customer.offers(gpu_name={"eq": exhibit.card.name}, num_gpus={"eq": 1})
            label = str(Label(installation=installation, job=exhibit.id, attempt=1))
            found[exhibit.id] = str(customer.rent(offers[0]["id"], label=label))
    clock.advance(max(0.0, time.time() - clock.now()))
    return found


def build(station: LocalStation, machines: dict[str, str]) -> str:
    """Fill an empty home, and return a token that opens everything in it."""
    home, store = station.settings.home, station.store
    station.users.add("ann", UserChanges(inbox=True, role=Role.USER))
    folder = home.parent / "pictures"
    pictures = write_sample_set(folder, images=_PICTURES)
    packed = pack_into(folder, home / "datasets")
    dataset = DatasetRef(
        source=str(folder), archive=str(packed.path), sha256=packed.sha256, size=packed.size, images=_PICTURES
    )
    now = store.now()
    for exhibit in EXHIBITS:
        Hanging(station=station, exhibit=exhibit, now=now, instance=machines.get(exhibit.id)).hang(dataset, pictures)
    for note in _notes(now):
        store.inbox.put("me", note)
    return station.tokens.create(NewToken(name="exhibition", user="me")).secret


def _notes(now: float) -> Iterator[Note]:
    texts = (
        (9.6, "failed", "portraits-b601", "high", "portraits failed: CUDA out of memory at step 214 of 2,000."),
        (3.1, "completed", "hills-v2-91ab", "normal", "hills-v2 is ready: loss 0.11 after 3,000 steps, $0.63."),
        (0.2, "stall", "poster-style-77d0", "high", "poster-style made no step for 12 min and is stopped in 15 min."),
    )
    for hours, kind, job, priority, text in texts:
        yield Note(key=f"{job}/{kind}", kind=kind, text=text, priority=priority, at=now - hours * 3600, job_id=job)
