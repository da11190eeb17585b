"""All settings, nested by subject. The text below each field is its meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from stationmaster.settings.addresses import (
    ServerUrl,
    Token,
    checked_discord_id,
    checked_email,
    checked_telegram_id,
)
from stationmaster.settings.files import (
    ArtifactSettings,
    BucketSettings,
    ComfyDeploySettings,
    HubSettings,
    TransferSettings,
)
from stationmaster.settings.flow import (
    DEFAULT_METRICS_CAP_BYTES,
    LEAST_POLL_SECONDS,
    BillingSettings,
    LimitSettings,
    LogSettings,
    MetricsSettings,
    MonitoringSettings,
    MonitorSettings,
    StallSettings,
    SweepSettings,
    WorkerSettings,
)
from stationmaster.settings.machines import (
    BootstrapSettings,
    LoopbackSettings,
    OwnHostSettings,
    SshSettings,
    VastSettings,
)
from stationmaster.settings.messages import NotifySettings
from stationmaster.settings.plain_http import plain_addresses
from stationmaster.settings.section import Section, checked_hours, checked_zone, section_of_defaults
from stationmaster.settings.serving import ServeSettings

__all__ = [
    "DEFAULT_LOG_CAP_BYTES",
    "DEFAULT_METRICS_CAP_BYTES",
    "LEAST_POLL_SECONDS",
    "PROVIDERS",
    "ArtifactSettings",
    "BillingSettings",
    "BootstrapSettings",
    "BucketSettings",
    "ComfyDeploySettings",
    "LimitSettings",
    "LogLevel",
    "LogSettings",
    "MetricsSettings",
    "MonitorSettings",
    "MonitoringSettings",
    "NotifySettings",
    "OwnHostSettings",
    "ServeSettings",
    "Settings",
    "SshSettings",
    "StallSettings",
    "SweepSettings",
    "TransferSettings",
    "VastSettings",
    "WorkerSettings",
    "checked_discord_id",
    "checked_email",
    "checked_hours",
    "checked_telegram_id",
    "checked_zone",
    "provider_named",
]

PROVIDERS = ("loopback", "simulator", "ssh", "vastai")
"""The providers that a job can run on."""
_PROVIDER_ALIASES = {"local": "ssh"}
DEFAULT_LOG_CAP_BYTES = 64 * 1024 * 1024
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


def provider_named(name: str) -> str:
    """The provider that a user means.

    >>> provider_named("local"), provider_named("vastai")
    ('ssh', 'vastai')
    """
    return _PROVIDER_ALIASES.get(name, name)


class Settings(Section):
    home: Path
    """Folder for everything that Stationmaster stores on this computer. Only you may read it."""
    database_url: SecretStr | None = None
    """PostgreSQL URL, for workers on several hosts; empty uses a SQLite file in the home."""
    server: ServerUrl | None = None
    """URL of a `stationmaster serve`, which commands then ask instead of this computer's store; also `--server`."""
    token: Token | None = None
    """Token for that server, created there by `stationmaster tokens create`. Empty: none; for a server on this
    computer the one in the file serve.token of its home."""
    plain_http_hosts: tuple[str, ...] = ()
    """Hosts in your own network that may get keys and tokens over plain HTTP, such as 10.0.0.5. All others need
    https, except this computer."""
    provider: str = "loopback"
    """Default provider: loopback, simulator, ssh (or local), vastai, or vastai:ACCOUNT."""
    log_level: LogLevel = "INFO"
    """Least severe level that workers log: DEBUG, INFO, WARNING or ERROR."""
    recipes: tuple[Path, ...] = ()
    """Folders with your own recipes, searched besides the built-in ones."""
    hf_token: Token | None = None
    """Hugging Face token, used on this computer to publish models and read datasets. If hf_read_token is not set,
    trainings that declare HF_TOKEN get this one; a rented machine gets it only if it is read-only."""
    hf_read_token: Token | None = None
    """Read-only Hugging Face token, sent as HF_TOKEN to the machines of trainings that declare it."""
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    """Other secrets by name. A recipe declares the names it needs; only the steps that use them get the values."""
    log_cap_bytes: int = Field(default=DEFAULT_LOG_CAP_BYTES, ge=1024)
    """Limit for the stored log of one job, in bytes."""
    worker: WorkerSettings = section_of_defaults()
    monitoring: MonitoringSettings = section_of_defaults()
    monitor: MonitorSettings = section_of_defaults()
    metrics: MetricsSettings = section_of_defaults()
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
            raise ValueError("hub.publish needs hf_token, a Hugging Face token with write access")
        return self

    @model_validator(mode="after")
    def _keys_are_encrypted(self) -> Settings:
        for name, host in plain_addresses(self):
            raise ValueError(
                f"{name}: plain HTTP would send keys unencrypted to {host}; use https://, or if the network is yours, "
                f"add {host} to plain_http_hosts"
            )
        return self

    @field_validator("provider")
    @classmethod
    def _known(cls, value: str) -> str:
        name = provider_named(value)
        if name not in PROVIDERS and not name.startswith("vastai:"):  # one of vastai.accounts
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
