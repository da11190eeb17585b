"""Models of Vast.ai's JSON: unknown fields are ignored, malformed ones become None, units are converted.

Only identifying fields must be valid: a row without an id raises ProviderFault and is never skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stationmaster.errors import ProviderFault
from stationmaster.providers.vastai.answer_limits import MOST_ROWS
from stationmaster.providers.vastai.bounds import (
    Charged,
    Count,
    Credit,
    Fraction,
    Gigabytes,
    GpuCount,
    Id,
    Maybe,
    Megabytes,
    Number,
    OfferedPrice,
    Port,
    Price,
    Seconds,
    Text,
    Time,
    TrafficPrice,
    Version,
)

Row = TypeVar("Row", bound="_Wire")


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class OfferRow(_Wire):
    """One offer of a search; not valid if a price is out of bounds, or missing.

    `inet_*` is read as Mbit/s, as by the official client; the documentation has MB/s.
    """

    id: Id
    num_gpus: GpuCount
    dph_total: OfferedPrice  # per hour, with `allocated_storage` of disk
    machine_id: Maybe[Id] = None
    gpu_name: Text = None
    gpu_ram: Maybe[Megabytes] = None  # of one GPU
    min_bid: Price | None = None
    cuda_max_good: Maybe[Version] = None
    disk_space: Maybe[Gigabytes] = None
    direct_port_count: Maybe[Count] = None
    duration: Maybe[Seconds] = None  # that the host stays available
    geolocation: Text = None
    reliability: Maybe[Fraction] = None
    reliability2: Maybe[Fraction] = None
    verification: Text = None
    verified: Maybe[bool] = None
    rentable: Maybe[bool] = None
    hosting_type: Maybe[Count] = None
    datacenter: Maybe[bool] = None
    inet_down: Maybe[Number] = None
    inet_up: Maybe[Number] = None
    inet_down_cost: TrafficPrice | None = None  # per GB
    inet_up_cost: TrafficPrice | None = None

    @property
    def is_datacenter(self) -> bool:
        # The documentation's example of a data centre has `hosting_type` 1; unconfirmed.
        return bool(self.datacenter) or self.hosting_type == 1

    @property
    def is_verified(self) -> bool:
        return self.verification == "verified" if self.verification is not None else bool(self.verified)


class Binding(_Wire):
    port: Port = Field(alias="HostPort")


class Prices(_Wire):
    total: Maybe[Price] = Field(default=None, alias="totalHour")


class InstanceRow(_Wire):
    """One instance, as the list and the single read show it. It bills: apart from its id, no value makes it invalid."""

    id: Id
    label: Text = None
    machine_id: Maybe[Id] = None
    actual_status: Text = None
    intended_status: Text = None
    cur_state: Text = None
    next_state: Text = None
    status_msg: Text = None
    is_bid: Maybe[bool] = None
    image_runtype: Text = None
    ssh_host: Text = None
    ssh_port: Maybe[Port] = None
    public_ipaddr: Text = None
    # A map, null until the machine runs; one page of the documentation shows a list of numbers instead.
    ports: Maybe[Mapping[str, Maybe[tuple[Binding, ...]]]] = None
    start_date: Maybe[Time] = None
    end_date: Maybe[Time] = None
    num_gpus: Maybe[GpuCount] = None
    gpu_name: Text = None
    gpu_util: Maybe[Number] = None  # percent in every client; the documentation has a fraction
    gpu_temp: Maybe[Number] = None
    disk_usage: Maybe[Number] = None  # GB; -1 before the first report
    dph_total: Maybe[Price] = None  # while it runs
    storage_total_cost: Maybe[Price] = None
    billed: Maybe[Prices] = Field(default=None, alias="instance")  # now: without the GPU when stopped

    @property
    def has_reported(self) -> bool:
        """Whether the host ever reported a running container; the values stay after a stop. (Third parties.)"""
        return self.disk_usage is not None and self.disk_usage >= 0


class InstancePage(_Wire):
    instances: tuple[dict[str, Any], ...]
    total_instances: Maybe[Count] = None
    next_token: Text = None


class VastUser(_Wire):
    """The account; `balance` is 0 for prepaid accounts, so only `credit` counts."""

    id: Id
    credit: Maybe[Credit] = None


class KeyRow(_Wire):
    """The list uses `key`, the answer to an addition uses `public_key`."""

    id: Maybe[Id] = None
    key: Text = None
    public_key: Text = None


class ChargeItem(_Wire):
    type: Text
    amount: Charged


class ChargeRow(_Wire):
    """One row of the bill; not valid if an amount is out of bounds."""

    start: Time
    end: Time
    source: str  # instance-7835610
    amount: Charged
    items: Maybe[tuple[ChargeItem, ...]] = None


class ChargePage(_Wire):
    results: tuple[dict[str, Any], ...]
    total: Maybe[Count] = None
    next_token: Text = None


class LogRequested(_Wire):
    result_url: str


def read(kind: type[Row], document: Any, *, what: str) -> Row:
    """Parse the document as `kind`. Raises ProviderFault if it does not fit."""
    try:
        return kind.model_validate(document)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "it"
        raise ProviderFault(f"Vast.ai's answer is not {what}: {place}: {first['msg']}") from problem


def read_all(kind: type[Row], documents: Sequence[Any], *, what: str) -> tuple[Row, ...]:
    _require_possible(documents)
    return tuple(read(kind, document, what=what) for document in documents)


def readable(kind: type[Row], documents: Sequence[Any]) -> tuple[Row, ...]:
    """The documents that can be parsed; for lists where a missing row does no harm."""
    _require_possible(documents)
    rows = []
    for document in documents:
        try:
            rows.append(kind.model_validate(document))
        except ValidationError:
            continue
    return tuple(rows)


def _require_possible(documents: Sequence[Any]) -> None:
    """Raise ProviderFault for more rows than any page has: reading them would hold up everything else."""
    if len(documents) > MOST_ROWS:
        raise ProviderFault(f"Vast.ai's answer has {len(documents)} rows on one page")
