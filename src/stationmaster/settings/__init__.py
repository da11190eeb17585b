"""Everything that can be set, nested by subject; each setting says beneath itself what it means."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from stationmaster.settings.addresses import Token, checked_discord_id, checked_email, checked_telegram_id
from stationmaster.settings.files import (
    ArtifactSettings,
    BucketSettings,
    ComfyDeploySettings,
    HubSettings,
    ServeSettings,
    TransferSettings,
)
from stationmaster.settings.flow import (
    LEAST_POLL_SECONDS,
    BillingSettings,
    LimitSettings,
    MonitoringSettings,
    StallSettings,
    SweepSettings,
    WorkerSettings,
)
from stationmaster.settings.logs import LogSettings
from stationmaster.settings.machines import (
    BootstrapSettings,
    LoopbackSettings,
    OwnHostSettings,
    SshSettings,
    VastSettings,
)
from stationmaster.settings.messages import NotifySettings
from stationmaster.settings.section import Section, checked_hours, checked_zone, section_of_defaults

__all__ = [
    "LEAST_POLL_SECONDS",
    "PROVIDERS",
    "BucketSettings",
    "LogLevel",
    "MonitoringSettings",
    "NotifySettings",
    "OwnHostSettings",
    "Settings",
    "SshSettings",
    "StallSettings",
    "VastSettings",
    "checked_discord_id",
    "checked_email",
    "checked_hours",
    "checked_telegram_id",
    "checked_zone",
]

PROVIDERS = ("loopback", "simulator", "ssh", "vastai")
"""Everywhere that a job can run."""
_PROVIDER_ALIASES = {"local": "ssh"}
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class Settings(Section):
    home: Path
    """Where everything local lies."""
    database_url: SecretStr | None = None
    """PostgreSQL for many workers; without it a SQLite file in the home."""
    provider: str = "loopback"
    """Where a job runs unless it says otherwise."""
    log_level: LogLevel = "INFO"
    """How much workers tell in their logs."""
    recipes: tuple[Path, ...] = ()
    """Further folders with recipes."""
    hf_token: Token | None = None
    """Token of the Hugging Face Hub, used at home: to publish, and to read datasets. Trainings that declare HF_TOKEN
    get it where hf_read_token is not set; a rented machine gets it only if it can read and nothing else."""
    hf_read_token: Token | None = None
    """Token of the Hub that can only read, sent as HF_TOKEN to the machines of trainings that declare it."""
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    """Further secrets that recipes may declare, by name; handed to the steps that name them."""
    log_cap_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    """How much of one job's log is kept at home."""
    worker: WorkerSettings = section_of_defaults()
    monitoring: MonitoringSettings = section_of_defaults()
    logs: LogSettings = section_of_defaults()
    limits: LimitSettings = section_of_defaults()
    billing: BillingSettings = section_of_defaults()
    transfer: TransferSettings = section_of_defaults()
    artifacts: ArtifactSettings = section_of_defaults()
    bucket: BucketSettings = section_of_defaults()
    hub: HubSettings = section_of_defaults()
    comfydeploy: ComfyDeploySettings = section_of_defaults()
    serve: ServeSettings = section_of_defaults()
    sweep: SweepSettings = section_of_defaults()
    loopback: LoopbackSettings = section_of_defaults()
    ssh: SshSettings = section_of_defaults()
    bootstrap: BootstrapSettings = section_of_defaults()
    vastai: VastSettings = section_of_defaults()
    notify: NotifySettings = section_of_defaults()

    @model_validator(mode="after")
    def _may_publish(self) -> Settings:
        if self.hub.publish and self.hf_token is None:
            raise ValueError("hub.publish needs hf_token, a token of the Hub that may write")
        return self

    @field_validator("provider")
    @classmethod
    def _known(cls, value: str) -> str:
        name = _PROVIDER_ALIASES.get(value, value)
        if name not in PROVIDERS and not name.startswith("vastai:"):  # an account of its own, see vastai.accounts
            raise ValueError(f"there is no provider {value}; use one of: {', '.join(PROVIDERS)}")
        return name

    @field_validator("log_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @property
    def store_url(self) -> str:
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.home / 'stationmaster.db'}"

    @property
    def uses_sqlite(self) -> bool:
        return self.store_url.startswith("sqlite")
