"""Where trainings can run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from stationmaster.durations import Duration
from stationmaster.money import MicroDollars
from stationmaster.settings.addresses import BaseUrl, Token
from stationmaster.settings.section import Dollars, Section

DEFAULT_ACCOUNT = "default"
"""The account that is meant where none is named."""
_ACCOUNT = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_FOLDER = re.compile(r"(?:/[A-Za-z0-9][A-Za-z0-9._-]*)+")


def vast_name(account: str) -> str:
    """What the provider under this account of Vast.ai is called.

    >>> vast_name("default"), vast_name("work")
    ('vastai', 'vastai:work')
    """
    return "vastai" if account == DEFAULT_ACCOUNT else f"vastai:{account}"


def _words(value: Any) -> Any:
    """Words with commas, as the environment and people write lists; numbers in a file count as words."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return tuple(str(word) for word in value) if isinstance(value, list | tuple) else value


Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_words)]


class LoopbackSettings(Section):
    price_per_hour: Dollars = MicroDollars(0)
    """What an hour on this computer is said to cost."""


class OwnHostSettings(Section):
    """A machine of one's own that jobs may use."""

    address: str = Field(min_length=1)
    """Name or number in the network, or a name from the SSH configuration."""
    name: str = Field(default="", pattern=r"^[A-Za-z0-9._-]*$")
    """What it is called here; by default its address."""
    user: str | None = None
    """Who logs in; by default whom the SSH configuration names."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """By default the port that the SSH configuration names, or 22."""
    key: Path | None = None
    """The private key; by default those of the SSH configuration and agent."""
    gpus: int = Field(default=0, ge=0)
    """GPUs that one job gets."""
    gpu: str | None = None
    """Their model, for estimates."""
    vram_gib: float = Field(default=0.0, ge=0)
    """The memory of each of them."""
    price_per_hour: Dollars = MicroDollars(0)
    """What an hour of it is said to cost."""
    slots: int = Field(default=1, ge=1)
    """Jobs that may run there at the same time."""
    job_root: str | None = None
    """Where jobs lie there; by default /opt/stationmaster/jobs, or below the user's home where that is not writable."""

    @model_validator(mode="before")
    @classmethod
    def _named_by_address(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("name") and isinstance(data.get("address"), str):
            return {**data, "name": re.sub(r"[^A-Za-z0-9._-]", "-", data["address"])}
        return data

    @field_validator("job_root")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("/", "~/")):
            raise ValueError("must begin with / or ~/")
        return value


class SshSettings(Section):
    hosts: tuple[OwnHostSettings, ...] = ()
    """Own machines that jobs may use: provider `ssh`."""
    config_path: Path | None = None
    """The OpenSSH client configuration to honour; by default ~/.ssh/config."""
    keepalive: Duration = 15.0
    """A silent connection is tested so often and dropped after three tests without an answer."""
    answer: Duration = Field(default=30.0, ge=1)
    """A machine that does not answer a question for so long counts as out of reach."""
    allow_unverified: bool = False
    """Whether secrets may go to machines whose host key nobody could verify."""

    @field_validator("hosts")
    @classmethod
    def _names_differ(cls, value: tuple[OwnHostSettings, ...]) -> tuple[OwnHostSettings, ...]:
        names = [host.name for host in value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two machines are called {twice}; give each its own name")
        return value


class BootstrapSettings(Section):
    """What is done to a machine's system before its first training."""

    install_drivers: bool = False
    """Whether a missing Docker, podman or NVIDIA driver is installed on own machines where the login is root."""


class VastAccountSettings(Section):
    """A further account at Vast.ai; everything but its key is as in the other `vastai` settings."""

    api_key: Token
    """The account's key; for `work` it is STATIONMASTER_VASTAI__ACCOUNTS__WORK__API_KEY (or _FILE, _COMMAND)."""


class VastSettings(Section):
    api_key: Token | None = None
    """The default account's key; needed as soon as Vast.ai is used without naming an account."""
    accounts: dict[str, VastAccountSettings] = Field(default_factory=dict)
    """Further accounts by name: `train --account work` pays with `work`. Each has its own limit of `max_rentals`."""
    ssh_key_path: Path | None = None
    """The private key whose public half Vast.ai knows."""
    api_base_url: BaseUrl = "https://console.vast.ai/api/v0"
    """Where its API answers."""
    preferred_gpus: tuple[str, ...] = ("4090", "A100")
    """GPU models in the order they are wanted."""
    max_bid_per_hour: Dollars = MicroDollars(4_500_000)
    """The most that any rental may cost per hour, all told."""
    min_vram_gb: float = Field(default=24.0, gt=0)
    """The least memory of a GPU."""
    preferred_regions: Words = ()
    """Countries (by their two letters) or places in the order they are wanted; others come after them."""
    blocked_regions: Words = ("CN", "HK")
    """Countries or places where nothing is rented; [] blocks none."""
    blocked_machines: Words = ()
    """Machines that are never rented, by the number that `offers --json` and Vast.ai call machine_id."""
    datacenter_only: bool = False
    """Whether only machines in data centres are rented."""
    verified_only: bool = True
    """Whether only machines that Vast.ai has verified are rented."""
    min_reliability: float = Field(default=0.95, ge=0, le=1)
    """The least reliability, as Vast.ai measures it: the share of time a machine was there."""
    min_cuda: float = Field(default=12.0, ge=0, lt=100)
    """The least CUDA version that a machine's driver supports; a recipe may ask for more."""
    default_disk_gb: float = Field(default=64.0, gt=0)
    """The disk that is rented with a machine."""
    job_root: str = "/opt/stationmaster/jobs"
    """The folder on rented machines that each job has a folder of its own in."""
    interruptible: bool = False
    """Whether machines are rented by a bid: cheaper, and taken away when somebody bids more."""
    guard_idle: Duration = Field(default=1800.0, ge=1)
    """A rented machine that nobody visits stops itself after so long, unless a training runs on it."""
    guard_abandon: Duration = Field(default=259200.0, ge=1)
    """A machine that is not allowed to stop itself destroys itself after so long."""
    guard_look: Duration = Field(default=15.0, ge=0.1)
    """How often a rented machine looks whether somebody came."""
    create_limit: Duration = Field(default=120.0, ge=1)
    """An order whose answer was lost may still be carried out for so long."""
    call_spacing: float = Field(default=1.0, ge=0)
    """The share of the documented pauses between two calls that is kept."""

    @field_validator("preferred_gpus")
    @classmethod
    def _some_gpu(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or any(not name.strip() for name in value):
            raise ValueError("name at least one GPU, such as 4090,A100")
        return tuple(name.strip() for name in value)

    @field_validator("accounts")
    @classmethod
    def _well_named(cls, value: dict[str, VastAccountSettings]) -> dict[str, VastAccountSettings]:
        wrong = next((name for name in value if not _ACCOUNT.fullmatch(name) or len(name) > 40), None)
        if wrong is not None:
            raise ValueError(
                f"{wrong!r} cannot be an account's name; use lower-case letters, digits, dashes and underscores"
            )
        if DEFAULT_ACCOUNT in value:
            raise ValueError(f"the account {DEFAULT_ACCOUNT} is the one of vastai.api_key; give this one another name")
        return value

    @field_validator("job_root")
    @classmethod
    def _plain_folder(cls, value: str) -> str:
        folder = value.rstrip("/")
        if not _FOLDER.fullmatch(folder):
            raise ValueError("must be a whole path of plain names, such as /opt/stationmaster/jobs")
        return folder

    @model_validator(mode="after")
    def _keys_differ(self) -> VastSettings:
        """One account under two names would be looked after twice."""
        keys = self.keys_by_account()
        named = {key: name for name, key in keys.items()}
        if len(named) < len(keys):
            twice = next(name for name, key in keys.items() if named[key] != name)
            other = named[keys[twice]]
            raise ValueError(f"the accounts {twice} and {other} have the same key; name each account once")
        return self

    def keys_by_account(self) -> dict[str, str]:
        """The key of every account that is set up, the default one first."""
        default = {} if self.api_key is None else {DEFAULT_ACCOUNT: self.api_key.get_secret_value()}
        return default | {name: account.api_key.get_secret_value() for name, account in self.accounts.items()}

    @field_validator("max_bid_per_hour")
    @classmethod
    def _above_zero(cls, value: MicroDollars) -> MicroDollars:
        if value <= 0:
            raise ValueError("must be above zero")
        return value
