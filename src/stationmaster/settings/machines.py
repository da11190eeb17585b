"""Settings of the providers: this computer, your own machines, Vast.ai."""

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
"""The account that is used if none is named."""
DEFAULT_JOB_ROOT = "/opt/stationmaster/jobs"
NO_HOSTS_HINT = """set ssh.hosts, as in STATIONMASTER_SSH__HOSTS='[{"address": "localhost"}]'"""
_ACCOUNT = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_FOLDER = re.compile(r"(?:/[A-Za-z0-9][A-Za-z0-9._-]*)+")


def vast_name(account: str) -> str:
    """The provider's name for this account of Vast.ai.

    >>> vast_name("default"), vast_name("work")
    ('vastai', 'vastai:work')
    """
    return "vastai" if account == DEFAULT_ACCOUNT else f"vastai:{account}"


def _words(value: Any) -> Any:
    """A list of words, which may be one text with commas; numbers in a file count as words."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return tuple(str(word) for word in value) if isinstance(value, list | tuple) else value


Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_words)]


class LoopbackSettings(Section):
    gpus: Words | None = None
    """GPUs of this computer that jobs may use, by number or UUID as `nvidia-smi -L` shows them. Default: all, or those
    in CUDA_VISIBLE_DEVICES; [] none."""
    price_per_hour: Dollars = Field(default=MicroDollars(0), ge=0)
    """Price of an hour on this computer, in dollars, for estimates and limits."""


class OwnHostSettings(Section):
    """One of your own machines that jobs may use."""

    address: str = Field(min_length=1)
    """Host name, IP address, or a host from the SSH configuration."""
    name: str = Field(default="", pattern=r"^[A-Za-z0-9._-]*$")
    """Name of the machine in Stationmaster; by default its address."""
    user: str | None = None
    """Login user; by default the one in the SSH configuration."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """SSH port; by default the one in the SSH configuration, or 22."""
    key: Path | None = None
    """Path of the private key; by default those of the SSH configuration and agent."""
    gpus: int = Field(default=0, ge=0)
    """Number of GPUs that each job gets."""
    gpu: str | None = None
    """GPU model, for estimates."""
    vram_gib: float = Field(default=0.0, ge=0)
    """Memory of each GPU, in GiB."""
    price_per_hour: Dollars = Field(default=MicroDollars(0), ge=0)
    """Price of an hour on this machine, in dollars, for estimates and limits."""
    slots: int = Field(default=1, ge=1)
    """Number of jobs that may run on the machine at the same time."""
    job_root: str | None = None
    """Folder for jobs; by default /opt/stationmaster/jobs, or one in the user's home if that is not writable."""

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
    """Your own machines that jobs may use, with provider `ssh`."""
    config_path: Path | None = None
    """Path of the OpenSSH client configuration; by default ~/.ssh/config."""
    keepalive: Duration = 15.0
    """Interval between keepalives on an idle SSH connection; after three without an answer it is closed."""
    answer: Duration = Field(default=30.0, ge=1)
    """Timeout of a request to a machine; after that the machine counts as unreachable."""
    allow_unverified: bool = False
    """Whether to send secrets to machines whose host key could not be verified."""

    @field_validator("hosts")
    @classmethod
    def _names_differ(cls, value: tuple[OwnHostSettings, ...]) -> tuple[OwnHostSettings, ...]:
        names = [host.name for host in value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two machines are named {twice}; give each its own name")
        return value


class BootstrapSettings(Section):
    """How a machine is set up before its first training."""

    install_drivers: bool = False
    """Whether to install a missing Docker, podman or NVIDIA driver on your own machines if the login user is root."""


class VastAccountSettings(Section):
    """Another account at Vast.ai; it has its own key and shares all other `vastai` settings."""

    api_key: Token
    """API key of the account. For `work`: STATIONMASTER_VASTAI__ACCOUNTS__WORK__API_KEY (or _FILE, _COMMAND)."""


class VastSettings(Section):
    api_key: Token | None = None
    """API key of the default account; needed to use Vast.ai without naming an account."""
    accounts: dict[str, VastAccountSettings] = Field(default_factory=dict)
    """Other accounts by name: `train --account work` pays with `work`. limits.max_rentals applies to each."""
    ssh_key_path: Path | None = None
    """Path of the private SSH key whose public key is registered at Vast.ai."""
    api_base_url: BaseUrl = "https://console.vast.ai/api/v0"
    """URL of Vast.ai's API."""
    preferred_gpus: tuple[str, ...] = ("4090", "A100")
    """GPU models, most preferred first."""
    max_bid_per_hour: Dollars = MicroDollars(4_500_000)
    """Highest price of a rental, in dollars per hour, everything included."""
    min_vram_gb: float = Field(default=24.0, gt=0)
    """Least memory of a GPU, in GB."""
    preferred_regions: Words = ()
    """Countries (two-letter codes) or places, most preferred first; all others come after them."""
    blocked_regions: Words = ("CN", "HK")
    """Countries or places where no machine is rented; [] blocks none."""
    blocked_machines: Words = ()
    """Machines that are never rented, by machine_id, as `offers --json` and Vast.ai show it."""
    datacenter_only: bool = False
    """Whether to rent only machines in data centres."""
    verified_only: bool = True
    """Whether to rent only machines that Vast.ai has verified."""
    min_reliability: float = Field(default=0.95, ge=0, le=1)
    """Least reliability as measured by Vast.ai: the share of time (0 to 1) that a machine was up."""
    min_cuda: float = Field(default=12.0, ge=0, lt=100)
    """Least CUDA version that a machine's driver supports; a recipe may require more."""
    default_disk_gb: float = Field(default=64.0, gt=0)
    """Disk size to rent with a machine, in GB; a recipe may need more."""
    job_root: str = DEFAULT_JOB_ROOT
    """Folder for jobs on rented machines."""
    interruptible: bool = False
    """Whether to rent machines by bid: cheaper, but lost when another customer bids more."""
    guard_idle: Duration = Field(default=1800.0, ge=1)
    """A rented machine that no worker has contacted for this long stops itself, unless a training runs on it."""
    call_spacing: float = Field(default=1.0, ge=0)
    """Factor for the pauses Vast.ai asks for between calls: 2 if two installations share an account; 0 removes them."""

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
                f"{wrong!r} is not a valid account name; use lower-case letters, digits, dashes and underscores"
            )
        if DEFAULT_ACCOUNT in value:
            raise ValueError(f"{DEFAULT_ACCOUNT} is the account of vastai.api_key; give this account another name")
        return value

    @field_validator("job_root")
    @classmethod
    def _plain_folder(cls, value: str) -> str:
        folder = value.rstrip("/")
        if not _FOLDER.fullmatch(folder):
            raise ValueError("must be an absolute path without spaces or symbols, such as /opt/stationmaster/jobs")
        return folder

    @model_validator(mode="after")
    def _keys_differ(self) -> VastSettings:
        """Refuse one account under two names: its machines would be handled twice."""
        keys = self.keys_by_account()
        named = {key: name for name, key in keys.items()}
        if len(named) < len(keys):
            twice = next(name for name, key in keys.items() if named[key] != name)
            other = named[keys[twice]]
            raise ValueError(f"the accounts {twice} and {other} have the same key; remove one of them")
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
