"""Machines: requirements, offers, rentals, and how to reach them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from stationmaster.money import ZERO, MicroDollars


class RentalState(StrEnum):
    """What we know about a rented machine."""

    REQUESTED = "REQUESTED"  # the intent is written; the provider may or may not have it
    HELD = "HELD"  # the provider gave us a machine
    RELEASING = "RELEASING"  # to be destroyed; the request is repeated until it is gone
    GONE = "GONE"  # confirmed by the provider


LIVE_RENTAL_STATES = (RentalState.REQUESTED, RentalState.HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAccess:
    """A machine that is a folder on this computer."""

    root: str
    job_root: str
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SshAccess:
    """A machine reached over SSH; `host_keys` are the pinned public keys, one OpenSSH line each."""

    host: str
    port: int
    user: str
    job_root: str
    key_path: str | None = None
    host_keys: tuple[str, ...] = ()
    use_config: bool = False
    unverified: bool = False  # no source for the right host keys: no secret is sent there
    environment: tuple[tuple[str, str], ...] = ()  # for every command run there; others can read it: no secrets


Access = LocalAccess | SshAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a job needs of a machine."""

    gpus: int = 0
    vram_gib: float = 0.0
    disk_gib: float = 1.0
    cuda: float | None = None  # lowest version that the driver must support
    max_price_per_hour: MicroDollars | None = None
    hours: float = 1.0  # of the whole job on an RTX 4090
    fixed_hours: float = 0.0  # the part that is the same on every GPU
    image: str | None = None
    interruptible: bool = False  # a bid: cheaper, may be interrupted
    traffic_gib: float = 0.0  # expected, upload and download together
    avoided_machines: frozenset[str] = frozenset()  # hosts that failed recently


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine that can be rented now; `price_per_hour` is the total, disk and expected traffic included."""

    id: str
    provider: str
    price_per_hour: MicroDollars
    gpu: str | None = None
    gpus: int = 0
    vram_gib: float = 0.0
    machine_id: str | None = None
    region: str | None = None
    reliability: float | None = None
    bid_per_hour: MicroDollars | None = None  # set if the offer is interruptible
    note: str | None = None  # what else a person should know about it now

    @property
    def gpus_text(self) -> str | None:
        """Its GPUs as text, with their number if there are several."""
        return self.gpu if self.gpu is None or self.gpus <= 1 else f"{self.gpus} x {self.gpu}"


class MachineStatus(StrEnum):
    CREATING = "CREATING"  # requested, loading
    RUNNING = "RUNNING"  # the container runs; a login may not work yet
    STOPPED = "STOPPED"  # the GPU is released; the disk is kept and billed
    FAILED = "FAILED"  # cannot run
    OFFLINE = "OFFLINE"  # the provider has no contact to the host
    UNKNOWN = "UNKNOWN"  # a status that this version does not know


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as its provider describes it."""

    provider_id: str
    label: str
    status: MachineStatus
    created_at: float  # by the provider's clock: compare only among machines of one provider
    accesses: tuple[Access, ...] = ()  # ways to reach it, best first; empty while there is none
    price_per_hour: MicroDollars = ZERO
    gpu: str | None = None
    gpus: int = 0
    machine_id: str | None = None
    interruptible: bool = False
    message: str | None = None  # from the provider: pull progress, or an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A provider's machines; only a complete listing of the right account shows that a machine is absent."""

    machines: tuple[Machine, ...]
    complete: bool
    account: str  # whose machines the provider listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a provider billed for one machine."""

    provider_id: str
    kind: str  # gpu, disk, traffic
    amount: MicroDollars
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rental:
    """One machine that may bill: written before it is requested, GONE only when the provider confirms it."""

    label: str  # unique; for a surplus machine `<label>#<provider id>`
    job_id: str
    attempt: int
    provider: str
    state: RentalState
    account: str | None = None
    provider_id: str | None = None
    offer: Offer | None = None
    surplus: bool = False
    requested_at: float = 0.0
    create_sent_at: float | None = None
    held_at: float | None = None
    release_asked_at: float | None = None
    stopped_at: float | None = None  # when the sweep stopped it with the model on its disk
    absent_listings: int = 0
    gone_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadMachine:
    """A host that failed, to be avoided for a while."""

    provider: str
    machine_id: str
    why: str


_LABEL = re.compile(r"sm-(?P<installation>[a-z0-9]{8})-(?P<job>[a-z0-9][a-z0-9-]*)-(?P<attempt>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The name of a rented machine, which identifies its installation, job and attempt.

    >>> str(Label(installation="ab12cd34", job="x-1", attempt=2)), Label.parse("sm-ab12cd34-x-1-2").job
    ('sm-ab12cd34-x-1-2', 'x-1')
    """

    installation: str
    job: str
    attempt: int

    def __str__(self) -> str:
        return f"sm-{self.installation}-{self.job}-{self.attempt}"

    @staticmethod
    def parse(text: str) -> Label | None:
        found = _LABEL.fullmatch(text)
        if found is None:
            return None
        return Label(installation=found["installation"], job=found["job"], attempt=int(found["attempt"]))
