"""Trainings on rented machines that their owner pays for with credits, with a Hub and a bucket to deliver to."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from stationmaster.model import CostLine, Desired, EntryKind, Job, Reason, State, TrainedModel, User
from stationmaster.money import MicroDollars
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import TrainRequest
from tests.support.chaos.storm_station import QUICK as QUICK_PACE
from tests.support.chaos.storm_station import StormStation, is_running, storm_forge
from tests.support.commands.command_line import stationmaster
from tests.support.jobs.local_world import write_pictures
from tests.support.jobs.submitting import submit
from tests.support.servers.hub_server import HUB_TOKEN, HubServer
from tests.support.servers.s3_servers import S3Server, rclone_s3

OWNER = "ann"
GIVEN = MicroDollars(50_000_000)
HELD = MicroDollars(500_000)  # for each attempt: all that a job may cost
QUICK = {"steps": 20, "seconds_per_step": 0, "save_every": 10, "sample_every": 20}
ENDLESS = {"steps": 20_000, "seconds_per_step": 0.1, "save_every": 10, "sample_every": 100_000}

_PATIENCE_SECONDS = 240.0
_NEVER_BILLED = 12 * 3600.0  # until then our own lines show what was charged
_DEAREST = MicroDollars(2_000_000)
_TENTH_IS_KEPT = {Reason.CANCELLED_BY_USER}
_NOBODY_PAYS = {Reason.NO_OFFER, Reason.MACHINE_NOT_READY, Reason.MACHINE_LOST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attempt held, cost, was charged and got back, all in micro-dollars, by the ledger and the cost lines."""

    reason: Reason
    held: int
    cost: int
    charged: int
    returned: int

    @property
    def due(self) -> int:
        """What it is to be charged by the policy: nothing, what it cost, or at least a tenth; never more than held."""
        if self.reason in _NOBODY_PAYS or not self.cost:
            return 0
        least = self.held - self.held * 9 // 10 if self.reason in _TENTH_IS_KEPT else 0
        return min(self.held, max(self.cost, least))


class PaidDeliveries:
    """A station at a simulator with billing on; `ann` may spend what she was given."""

    def __init__(
        self, storm: StormStation, hub: HubServer, bucket: S3Server, pictures: Path, servers: ExitStack
    ) -> None:
        self.hub = hub
        self.storm = storm
        self._bucket = bucket
        self._pictures = pictures
        self._servers = servers
        self._worker: int | None = None
        self.station = LocalStation(storm.settings, storm.environ)
        self.allow(OWNER, GIVEN)

    def close(self) -> None:
        self.station.close()

    def allow(self, user: str, amount: MicroDollars) -> None:
        self.storm.store.users.put(User(name=user, inbox=True))
        self.storm.store.ledger.grant(user, amount, note="to begin with")

    def submit(self, name: str, parameters: Mapping[str, Any], **request: Any) -> None:
        values: dict[str, Any] = {
            "recipe": "tiny-lora@1",
            "dataset": self._pictures,
            "id": name,
            "name": name,
            "trigger": "ohwx",
            "owner": OWNER,
            "provider": "simulator",
            "max_price": _DEAREST,
            "max_spend": HELD,
            "parameters": {"python": sys.executable, **parameters},
        }
        submit(self.station, TrainRequest(**{**values, **request}))

    def start(self, name: str, parameters: Mapping[str, Any], **request: Any) -> None:
        """The job is on its way: it has a machine. All at once would ask for the cheapest one."""
        self.submit(name, parameters, **request)
        self.until(
            lambda: any(rental.provider_id for rental in self.storm.store.rentals.of_job(name)), f"{name}'s machine"
        )

    def work(self) -> None:
        """While a job is on its way there is a worker; the last one left when nothing needed it any more."""
        if self.storm.busy() and (self._worker is None or not is_running(self._worker)):
            self._worker = self.storm.start("worker")

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        def is_reached() -> Any:
            self.work()
            return condition()

        return self.storm.until(is_reached, what, seconds=_PATIENCE_SECONDS)

    def until_saved(self, name: str) -> None:
        self.until(lambda: self.storm.store.checkpoints.of_job(name), f"a checkpoint of {name}")

    def until_ended(self, *names: str) -> None:
        for name in names:
            self.until(lambda: self.job(name).state is State.ENDED, f"the end of {name}")  # noqa: B023 (waited for here)

    def cancel(self, name: str) -> None:
        self.station.jobs.desire(name, Desired.CANCEL)

    def take_places_down(self) -> None:
        """Neither the Hub nor the bucket answers from now on."""
        self._servers.close()

    def job(self, name: str) -> Job:
        return self.storm.job(name)

    def model(self, name: str) -> TrainedModel | None:
        return self.station.jobs.view(name).trained

    def told(self, name: str, kind: str) -> list[Mapping[str, Any]]:
        return [event.payload for event in self.station.events.of_job(name) if event.kind == kind]

    def places(self, name: str) -> dict[str, bytes]:
        """The content of each place that should have the model, read without our own code."""
        model = self.model(name)
        return {} if model is None else {place.kind: self._read(place.kind, place.address) for place in model.places}

    def attempts(self, name: str) -> list[Attempt]:
        """Every attempt of a job by the ledger's own entries; one that is still held for has none."""
        store = self.storm.store
        entries = [entry for entry in store.ledger.entries(self.job(name).spec.owner or "") if entry.job == name]
        rentals = {rental.label: rental.attempt for rental in store.rentals.of_job(name)}
        lines = store.costs.of_job(name)
        found = []
        for attempt in sorted({entry.attempt for entry in entries if entry.attempt is not None}):
            own = [entry for entry in entries if entry.attempt == attempt]
            settled = next(entry for entry in own if entry.kind in (EntryKind.SETTLEMENT, EntryKind.RELEASE))
            found.append(
                Attempt(
                    reason=Reason(settled.note),
                    held=sum(entry.held for entry in own if entry.kind is EntryKind.HOLD),
                    cost=sum(_amount(line) for line in lines if rentals[line.rental_label] == attempt),
                    charged=-sum(entry.held for entry in own if entry.kind is EntryKind.SETTLEMENT),
                    returned=sum(entry.balance for entry in own if entry.kind is EntryKind.RELEASE),
                )
            )
        return found

    def verified(self) -> str:
        """The last line of `credits verify`."""
        done = stationmaster("credits", "verify", environ=self.storm.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    def machines(self, name: str) -> list[dict[str, Any]]:
        """Every machine that the simulator ever made for a job, as it really is."""
        prefix = f"{self.storm.label_prefix}{name}-"
        return [machine for machine in self.storm.truth() if machine["label"].startswith(prefix)]

    def _read(self, kind: str, address: str) -> bytes:
        if kind == "hub":
            repo, _, path = address.removeprefix("hf://").rpartition("/")
            content = self.hub.content(repo, path)
            assert content is not None, f"nothing is at {address}"
            return content
        if kind == "bucket":
            assert self._bucket.folder is not None
            return (self._bucket.folder / address.removeprefix(f"s3://{self._bucket.bucket}/")).read_bytes()
        return Path(address).read_bytes()


@contextmanager
def paid_deliveries(folder: Path, **environ: str) -> Iterator[PaidDeliveries]:
    """Afterwards neither a machine nor a server nor a worker is left."""
    with ExitStack() as stack:
        servers = stack.enter_context(ExitStack())
        hub = servers.enter_context(HubServer())
        bucket = servers.enter_context(rclone_s3(folder / "s3"))
        forge = storm_forge()
        url = stack.enter_context(forge.simulator(folder / "simulator", hosts=400))
        settings = {
            "STATIONMASTER_BILLING__ENABLED": "true",
            "STATIONMASTER_HUB__PUBLISH": "true",
            "STATIONMASTER_HUB__URL": hub.url,
            "HF_TOKEN": HUB_TOKEN,
            "STATIONMASTER_LIMITS__MAX_RENTALS": "8",
            "STATIONMASTER_WORKER__SWEEP": "5",
            **bucket.environment(),
            **environ,
        }
        station = StormStation(folder / "home", url, forge, QUICK_PACE, _NEVER_BILLED, **settings)
        storm = stack.enter_context(closing(station))
        yield stack.enter_context(
            closing(PaidDeliveries(storm, hub, bucket, write_pictures(folder / "pictures"), servers))
        )


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _amount(line: CostLine) -> int:
    """What a closed cost line comes to by its rate and time, rounded half up; it must say the same itself."""
    assert line.ended_at is not None, f"a line is open: {line}"
    exact = Fraction(line.rate_per_hour) * Fraction(line.ended_at - line.started_at) / 3600
    amount = int(exact + Fraction(1, 2))
    assert line.amount == amount, line
    return amount
