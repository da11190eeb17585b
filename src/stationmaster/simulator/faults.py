"""Injected faults: armed one by one, read from a file, or drawn from a seed; each occurrence is recorded."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from stationmaster.documents import read_yaml
from stationmaster.errors import ConfigInvalid


class FaultKind(StrEnum):
    # Triggered by a request.
    SLOW_ANSWER = "slow_answer"  # the answer takes `seconds`; with operation "create" a slow create
    LOST_ANSWER = "lost_answer"  # executed, but the connection is dropped before the answer
    SERVER_ERROR = "server_error"  # `status` (502), before the request is executed, or after it with `after_effect`
    RATE_LIMITED = "rate_limited"  # 429 in the given `shape`, else in each of the three in turn
    OFFER_GONE = "offer_gone"  # another customer took it; `status` 410 or 400, or 404 for "never existed"
    ERROR_WITH_CONTRACT = "error_with_contract"  # an error, but the machine is rented anyway: stopped, its disk billed
    DEPRECATED_LIST = "deprecated_list"  # the list answers that it is deprecated; `status` 200 or 410
    SHORT_PAGE = "short_page"  # the list ends early; its total disagrees
    EMPTY_LIST = "empty_list"  # the list and its total show no instances
    LIST_LAG = "list_lag"  # a new instance is missing from lists for `seconds`
    LYING_DESTROY = "lying_destroy"  # answers "success" but destroys nothing
    SLOW_DESTROY = "slow_destroy"  # answers "success" but takes `seconds`, billed
    START_QUEUED = "start_queued"  # the GPU is taken; the start is queued for `seconds` and may bill
    NEVER_READY = "never_ready"  # the machine never starts; `message` is its status message
    # Triggered on a running machine.
    HOST_VANISHES = "host_vanishes"  # power cut: unreachable, processes dead, "offline" permanently
    PARTITION = "partition"  # unreachable for `seconds` while its processes continue
    HOST_KEY_SWAPPED = "host_key_swapped"  # SSH answers with another key
    SSH_REFUSED = "ssh_refused"  # "running", but SSH refuses for `seconds`; `door` direct, proxy or both
    STATUS_LIES = "status_lies"  # "exited" for `seconds` while SSH works
    DISK_FULL = "disk_full"  # all writes fail
    CLOCK_SKEW = "clock_skew"  # the machine's clock is wrong by `seconds`
    CREDIT_GONE = "credit_gone"  # the account's credit is spent: everything stops
    OUTBID = "outbid"  # another customer bids more for `seconds`: stopped, a start is queued, its disk still billed
    CONTRACT_ENDS = "contract_ends"  # the contract ends: stopped


HAPPENING = frozenset(
    {
        FaultKind.HOST_VANISHES,
        FaultKind.PARTITION,
        FaultKind.HOST_KEY_SWAPPED,
        FaultKind.SSH_REFUSED,
        FaultKind.STATUS_LIES,
        FaultKind.DISK_FULL,
        FaultKind.CLOCK_SKEW,
        FaultKind.CREDIT_GONE,
        FaultKind.OUTBID,
        FaultKind.CONTRACT_ENDS,
    }
)
"""Faults that occur on a running machine; the others are triggered by a request."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """One fault; a field that is not set matches everything."""

    kind: FaultKind
    times: int = 1
    skip: int = 0
    probability: float = 1.0
    at_seconds: float = 0.0
    operation: str | None = None
    label: str | None = None
    instance_id: int | None = None
    seconds: float = 60.0
    status: int | None = None
    shape: str | None = None
    message: str | None = None
    door: str = "both"
    after_effect: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """An occurrence of a fault, with its target."""

    kind: FaultKind
    at: float
    operation: str | None
    instance_id: int | None
    label: str | None
    status: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A request or running machine that a fault is matched against."""

    operation: str | None = None
    instance_id: int | None = None
    label: str | None = None
    status: str | None = None


class FaultPlan:
    """The armed faults and the record of their occurrences."""

    def __init__(self, faults: Iterable[InjectedFault] = (), *, seed: int, started_at: float) -> None:
        self._draw = random.Random(f"{seed}/faults")
        self._started_at = started_at
        self._armed: list[_Armed] = [_Armed(fault, base=started_at) for fault in faults]
        self._strikes: list[Strike] = []

    def arm(self, fault: InjectedFault, *, now: float) -> None:
        """Add a fault; its `at_seconds` counts from now."""
        self._armed.append(_Armed(fault, base=now))

    def disarm(self) -> None:
        self._armed.clear()

    def take(self, kind: FaultKind, target: Target, *, now: float) -> InjectedFault | None:
        """Take and record the armed fault of this kind for `target`; None if there is none."""
        for armed in self._armed:
            if armed.fault.kind is kind and armed.meets(target, now=now) and armed.strikes(self._draw):
                self._armed = [other for other in self._armed if other.left > 0]
                self._record(kind, target, now=now)
                return armed.fault
        return None

    @property
    def armed(self) -> list[InjectedFault]:
        return [armed.fault for armed in self._armed]

    @property
    def strikes(self) -> list[Strike]:
        return list(self._strikes)

    def _record(self, kind: FaultKind, target: Target, *, now: float) -> None:
        self._strikes.append(
            Strike(
                kind=kind,
                at=now,
                operation=target.operation,
                instance_id=target.instance_id,
                label=target.label,
                status=target.status,
            )
        )


class _Armed:
    def __init__(self, fault: InjectedFault, *, base: float) -> None:
        self.fault = fault
        self.left = fault.times
        self._skip = fault.skip
        self._due = base + fault.at_seconds

    def meets(self, target: Target, *, now: float) -> bool:
        fault = self.fault
        return (
            self.left > 0
            and now >= self._due
            and fault.operation in (None, target.operation)
            and fault.instance_id in (None, target.instance_id)
            and (fault.label is None or (target.label or "").startswith(fault.label))
        )

    def strikes(self, draw: random.Random) -> bool:
        if self._skip > 0:
            self._skip -= 1
            return False
        if draw.random() >= self.fault.probability:
            return False
        self.left -= 1
        return True


def parse_faults(document: Any) -> list[InjectedFault]:
    """Parse a document: one fault, a list of them, or `{"seed", "faults", "storm"}`.

    A storm is drawn from the seed: `{"kinds": […], "seconds": 60, "every_seconds": [2, 6], "fault_seconds": 3}`.
    """
    try:
        if isinstance(document, dict) and "kind" not in document:
            drawn = _storm_of(document.get("storm"), seed=int(document.get("seed", 0)))
            return [*_FAULTS.validate_python(document.get("faults") or []), *drawn]
        return _FAULTS.validate_python(document if isinstance(document, list) else [document])
    except ValidationError as invalid:
        first = invalid.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        known = ", ".join(FaultKind)
        raise ConfigInvalid(f"invalid fault: {place}: {first['msg']}", hint=f"kinds: {known}") from invalid


def read_faults(path: Path) -> list[InjectedFault]:
    """Read the faults from a YAML or JSON file. Raises ConfigInvalid."""
    try:
        return parse_faults(read_yaml(path.read_text(encoding="utf-8")) or [])
    except OSError as problem:
        raise ConfigInvalid(f"{path}: {problem.strerror}") from problem
    except (ValueError, TypeError) as problem:
        raise ConfigInvalid(f"cannot read faults from {path}: {problem}") from problem


def storm(
    seed: int,
    *,
    seconds: float,
    every_seconds: tuple[float, float] = (2.0, 6.0),
    kinds: Sequence[FaultKind] = tuple(FaultKind),
    fault_seconds: float = 3.0,
) -> list[InjectedFault]:
    """Faults at random times, by seed, over `seconds`; every kind occurs once before any repeats."""
    draw = random.Random(f"{seed}/storm")
    faults: list[InjectedFault] = []
    deck: list[FaultKind] = []
    moment = draw.uniform(*every_seconds)
    while moment < seconds and kinds:
        if not deck:
            deck = draw.sample(list(kinds), len(kinds))
        kind = deck.pop()
        # A lost or late answer matters most for a create, so half of them are aimed there.
        aimed = kind in (FaultKind.LOST_ANSWER, FaultKind.SLOW_ANSWER) and draw.random() < 0.5
        operation = "create" if aimed else None
        faults.append(InjectedFault(kind=kind, at_seconds=round(moment, 3), seconds=fault_seconds, operation=operation))
        moment += draw.uniform(*every_seconds)
    return faults


def _storm_of(document: Any, *, seed: int) -> list[InjectedFault]:
    if not document:
        return []
    wanted = _STORM.validate_python(document)
    return storm(
        seed,
        seconds=wanted.seconds,
        every_seconds=wanted.every_seconds,
        kinds=wanted.kinds or tuple(FaultKind),
        fault_seconds=wanted.fault_seconds,
    )


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class _Storm:
    seconds: float
    every_seconds: tuple[float, float] = (2.0, 6.0)
    kinds: tuple[FaultKind, ...] = ()
    fault_seconds: float = 3.0


_FAULTS = TypeAdapter(list[InjectedFault])
_STORM = TypeAdapter(_Storm)
