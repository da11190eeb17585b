"""The shapes of Vast.ai's answers, as its documentation and its clients know them; for holding answers against."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """Strict about types on the wire; unknown fields are allowed."""

    model_config = ConfigDict(strict=True, extra="allow")


Number = int | float


class Prices(Shape):
    gpuCostPerHour: Number
    diskHour: Number
    totalHour: Number
    discountTotalHour: Number
    discountedTotalPerHour: Number


class Host(Shape):
    machine_id: int
    host_id: int
    bundle_id: int
    gpu_name: str
    num_gpus: int
    gpu_ram: int
    gpu_frac: float
    compute_cap: int
    cuda_max_good: float
    driver_version: str
    cpu_cores: int | None
    cpu_cores_effective: float
    cpu_ram: int
    disk_bw: float
    inet_down: float
    inet_up: float
    inet_down_cost: float
    inet_up_cost: float
    direct_port_count: int
    geolocation: str
    reliability2: float
    verification: Literal["verified", "unverified", "deverified"]
    dph_base: float
    dph_total: float
    min_bid: float
    storage_cost: float
    storage_total_cost: float
    disk_space: float
    is_bid: bool
    start_date: float
    end_date: float
    duration: float
    search: Prices


class Offer(Host):
    id: int
    ask_contract_id: int
    gpu_total_ram: int
    static_ip: bool
    reliability: float
    rentable: Literal[True]
    rented: Literal[False]
    hosting_type: int
    dlperf: float
    score: float
    public_ipaddr: str


class Offers(Shape):
    offers: list[Offer]


class Created(Shape):
    success: Literal[True]
    new_contract: int
    instance_api_key: str = Field(min_length=32)


class Binding(Shape):
    HostIp: str
    HostPort: str


State = Literal["running", "stopped"]


class Instance(Host):
    id: int
    label: str | None
    actual_status: Literal["created", "loading", "running", "exited", "offline"] | None
    intended_status: State
    cur_state: State
    next_state: State
    status_msg: str | None
    image_uuid: str
    image_runtype: str
    image_args: list[str]
    extra_env: list[list[str]]
    onstart: str | None
    template_id: None
    template_hash_id: None
    jupyter_token: str
    ssh_host: str | None
    ssh_idx: str
    ssh_port: int | None
    machine_dir_ssh_port: int | None
    public_ipaddr: str | None
    local_ipaddrs: str
    direct_port_start: int
    direct_port_end: int
    ports: dict[str, list[Binding]] | None
    uptime_mins: float | None
    time_remaining: str
    gpu_totalram: int
    gpu_util: float | None
    gpu_temp: float | None
    cpu_util: float
    mem_limit: float
    mem_usage: float | None
    vmem_usage: float | None
    disk_usage: Number
    disk_util: Number
    instance: Prices
    credit_balance: None
    country_code: None


class OneInstance(Shape):
    instances: Instance | None


class InstancePage(Shape):
    success: Literal[True]
    instances_found: int
    total_instances: int
    label_counts: dict[str, int]
    next_token: str | None
    instances: list[Instance]


class Done(Shape):
    success: Literal[True]


class Refused(Shape):
    success: Literal[False]
    error: str
    msg: str


class RefusedWithContract(Refused):
    new_contract: int


class StartQueued(Shape):
    success: Literal[False]
    msg: Literal["Required resources are currently unavailable, state change queued."]


class LogRequested(Shape):
    success: Literal[True]
    result_url: str = Field(pattern=r"^http://.*/instance_logs/[0-9a-f]+\.log$")
    msg: str


class AccountKey(Shape):
    id: int
    user_id: int
    key: str
    created_at: float
    deleted_at: None


class AddedKey(Shape):
    id: int
    public_key: str


class KeyAdded(Shape):
    success: Literal[True]
    key: AddedKey


class InstanceKeys(Shape):
    success: Literal[True]
    ssh_keys: str
    """A JSON text inside the JSON."""


class User(Shape):
    id: int
    email: str
    credit: float
    balance: Number
    balance_threshold: Number
    can_pay: bool
    has_billing: bool
    ssh_key: str | None
    host_agreement_accepted: bool


class ChargeItem(Shape):
    type: Literal["gpu", "disk", "bwd", "bwu"]
    amount: float


class ChargeMetadata(Shape):
    label: str | None


class Charge(Shape):
    start: float
    end: float
    type: Literal["instance"]
    source: str = Field(pattern=r"^instance-\d+$")
    description: str
    amount: float
    metadata: ChargeMetadata
    items: list[ChargeItem]


class Charges(Shape):
    success: Literal[True]
    count: int
    total: int
    next_token: str | None
    results: list[Charge]


class FilterRow(Shape):
    actual_status: str | None
    verification: str
    gpu_name: str


class Filters(Shape):
    filters: list[FilterRow]
