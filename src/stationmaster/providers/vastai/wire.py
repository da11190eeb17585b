"""Models of Vast.ai's JSON: unknown fields are ignored, malformed ones become None, units are converted.

Only identifying fields must be valid: a row without an id raises ProviderFault and is never skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from stationmaster.errors import ProviderFault
from stationmaster.money import MicroDollars, from_dollars

T = TypeVar("T")
Row = TypeVar("Row", bound="_Wire")


def _or_none(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """None for an invalid value: the API's documentation and its answers disagree on many types."""
    try:
        return handler(value)
    except (ValidationError, ValueError):
        return None


def _stripped(value: object) -> str | None:
    """Strip the text: addresses come with stray white space."""
    text = str(value).strip() if value is not None else ""
    return text or None


def _dollars(value: object) -> MicroDollars:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not an amount")
    return from_dollars(value)


Maybe = Annotated[T | None, WrapValidator(_or_none)]
Text = Annotated[str | None, BeforeValidator(_stripped)]
Price = Annotated[MicroDollars, BeforeValidator(_dollars)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class OfferRow(_Wire):
    """One offer of a search. `inet_*` is read as Mbit/s, as by the official client; the documentation has MB/s."""

    id: int
    num_gpus: int
    dph_total: Price  # per hour, with `allocated_storage` of disk
    machine_id: Maybe[int] = None
    gpu_name: Text = None
    gpu_ram: Maybe[float] = None  # MB of one GPU
    min_bid: Maybe[Price] = None
    cuda_max_good: Maybe[float] = None
    disk_space: Maybe[float] = None  # GB
    direct_port_count: Maybe[int] = None
    duration: Maybe[float] = None  # seconds that the host stays available
    geolocation: Text = None
    reliability: Maybe[float] = None
    reliability2: Maybe[float] = None
    verification: Text = None
    verified: Maybe[bool] = None
    rentable: Maybe[bool] = None
    hosting_type: Maybe[int] = None
    datacenter: Maybe[bool] = None
    inet_down: Maybe[float] = None
    inet_up: Maybe[float] = None
    inet_down_cost: Maybe[Price] = None  # per GB
    inet_up_cost: Maybe[Price] = None

    @property
    def is_datacenter(self) -> bool:
        # The documentation's example of a data centre has `hosting_type` 1; unconfirmed.
        return bool(self.datacenter) or self.hosting_type == 1

    @property
    def is_verified(self) -> bool:
        return self.verification == "verified" if self.verification is not None else bool(self.verified)


class Binding(_Wire):
    port: int = Field(alias="HostPort")


class Prices(_Wire):
    total: Maybe[Price] = Field(default=None, alias="totalHour")


class InstanceRow(_Wire):
    """One instance, as the list and the single read show it."""

    id: int
    label: Maybe[str] = None
    machine_id: Maybe[int] = None
    actual_status: Maybe[str] = None
    intended_status: Maybe[str] = None
    cur_state: Maybe[str] = None
    next_state: Maybe[str] = None
    status_msg: Text = None
    is_bid: Maybe[bool] = None
    image_runtype: Maybe[str] = None
    ssh_host: Text = None
    ssh_port: Maybe[int] = None
    public_ipaddr: Text = None
    # A map, null until the machine runs; one page of the documentation shows a list of numbers instead.
    ports: Maybe[Mapping[str, Maybe[tuple[Binding, ...]]]] = None
    start_date: Maybe[float] = None
    end_date: Maybe[float] = None
    num_gpus: Maybe[int] = None
    gpu_name: Text = None
    gpu_util: Maybe[float] = None  # percent in every client; the documentation has a fraction
    gpu_temp: Maybe[float] = None
    disk_usage: Maybe[float] = None  # GB; -1 before the first report
    dph_total: Maybe[Price] = None  # while it runs
    storage_total_cost: Maybe[Price] = None
    billed: Maybe[Prices] = Field(default=None, alias="instance")  # now: without the GPU when stopped

    @property
    def has_reported(self) -> bool:
        """Whether the host ever reported a running container; the values stay after a stop. (Third parties.)"""
        return self.disk_usage is not None and self.disk_usage >= 0


class InstancePage(_Wire):
    instances: tuple[dict[str, Any], ...]
    total_instances: Maybe[int] = None
    next_token: Text = None


class VastUser(_Wire):
    """The account; `balance` is 0 for prepaid accounts, so only `credit` counts."""

    id: int
    credit: Maybe[Price] = None


class KeyRow(_Wire):
    """The list uses `key`, the answer to an addition uses `public_key`."""

    id: Maybe[int] = None
    key: Text = None
    public_key: Text = None


class ChargeItem(_Wire):
    type: str
    amount: Price


class ChargeRow(_Wire):
    start: float
    end: float
    source: str  # instance-7835610
    amount: Price
    items: Maybe[tuple[ChargeItem, ...]] = None


class ChargePage(_Wire):
    results: tuple[dict[str, Any], ...]
    total: Maybe[int] = None
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


def read_all(kind: type[Row], documents: Iterable[Any], *, what: str) -> tuple[Row, ...]:
    return tuple(read(kind, document, what=what) for document in documents)


def readable(kind: type[Row], documents: Iterable[Any]) -> tuple[Row, ...]:
    """The documents that can be parsed; for lists where a missing row does no harm."""
    rows = []
    for document in documents:
        try:
            rows.append(kind.model_validate(document))
        except ValidationError:
            continue
    return tuple(rows)
