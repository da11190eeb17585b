"""Machines: what is wanted, what is offered, what is rented, and how it is reached."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from stationmaster.money import ZERO, MicroDollars


class RentalState(StrEnum):
    """What we know of a rented machine."""

    REQUESTED = "REQUESTED"  # the intent is written; the provider may or may not know of it
    HELD = "HELD"  # the provider gave us a machine
    RELEASING = "RELEASING"  # to be destroyed, asked until gone
    GONE = "GONE"  # the provider itself says so


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
    unverified: bool = False  # nobody could say which host keys are the right ones: no secret goes there
    environment: tuple[tuple[str, str], ...] = ()  # of every command run there; others can read it: no secrets


Access = LocalAccess | SshAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a job needs of a machine."""

    gpus: int = 0
    vram_gib: float = 0.0
    disk_gib: float = 1.0
    cuda: float | None = None  # that the driver must support, at least
    max_price_per_hour: MicroDollars | None = None
    hours: float = 1.0  # of the whole job on an RTX 4090
    fixed_hours: float = 0.0  # those of them that no GPU makes shorter or longer
    image: str | None = None
    interruptible: bool = False  # a bid: cheaper, may be taken away
    traffic_gib: float = 0.0  # expected up and down together
    avoided_machines: frozenset[str] = frozenset()  # hosts that failed us lately


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Something that can be rented now; `price_per_hour` is the whole of it, disk and expected traffic included."""

    id: str
    provider: str
    price_per_hour: MicroDollars
    gpu: str | None = None
    gpus: int = 0
    vram_gib: float = 0.0
    machine_id: str | None = None
    region: str | None = None
    reliability: float | None = None
    bid_per_hour: MicroDollars | None = None  # set where the offer is interruptible

    @property
    def gpus_text(self) -> str | None:
        """Its GPUs by name and number."""
        return self.gpu if self.gpu is None or self.gpus <= 1 else f"{self.gpus} x {self.gpu}"


class MachineStatus(StrEnum):
    CREATING = "CREATING"  # ordered, loading
    RUNNING = "RUNNING"  # the container runs, which is not yet a login
    STOPPED = "STOPPED"  # no GPU, but the disk is kept and bills
    FAILED = "FAILED"  # will never run
    OFFLINE = "OFFLINE"  # the provider lost contact to the host
    UNKNOWN = "UNKNOWN"  # a word that we do not know


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as its provider describes it."""

    provider_id: str
    label: str
    status: MachineStatus
    created_at: float  # by the provider's clock: only compared among machines of one provider
    accesses: tuple[Access, ...] = ()  # ways to reach it, the better one first; empty while there is none
    price_per_hour: MicroDollars = ZERO
    gpu: str | None = None
    gpus: int = 0
    machine_id: str | None = None
    interruptible: bool = False
    message: str | None = None  # the provider's own words: pull progress, or what went wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A provider's machines; only a complete listing of the right account can show that something is absent."""

    machines: tuple[Machine, ...]
    complete: bool
    account: str  # whom the provider took us for


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a provider billed for one machine, by its own account."""

    provider_id: str
    kind: str  # gpu, disk, traffic
    amount: MicroDollars
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rental:
    """One machine that may bill: written before it is asked for, GONE only by the provider's word."""

    label: str  # unique; a surplus machine's row carries `<label>#<provider id>`
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
    stopped_at: float | None = None  # when the sweep stopped it, its model still on its disk
    absent_listings: int = 0
    gone_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadMachine:
    """A host that failed us, to be avoided for a while."""

    provider: str
    machine_id: str
    why: str


_LABEL = re.compile(r"sm-(?P<installation>[a-z0-9]{8})-(?P<job>[a-z0-9][a-z0-9-]*)-(?P<attempt>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The name a rented machine carries, from which its job and attempt are found again.

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
