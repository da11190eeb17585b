"""Everything that can be set, nested by subject; each setting says beneath itself what it means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from stationmaster.durations import Duration
from stationmaster.money import MicroDollars, from_dollars

_PROVIDER_ALIASES = {"local": "ssh"}
LEAST_POLL_SECONDS = 0.01  # a job that is always due would leave no time for the others

Dollars = Annotated[MicroDollars, BeforeValidator(from_dollars)]
Identifier = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]  # files may hold it as a number


def checked_hours(span: str) -> str:
    """A span of the day such as 22:00-07:00. Raises ValueError for anything else."""
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", span):
        raise ValueError(f"{span!r} is not a span of hours; write one such as 22:00-07:00")
    return span


def checked_zone(name: str) -> str:
    """A time zone's name. Raises ValueError for one that is not known here."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name} is not a time zone; write one such as Europe/Berlin") from None
    return name


QuietHours = Annotated[str, AfterValidator(checked_hours)]
TimeZone = Annotated[str, AfterValidator(checked_zone)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class WorkerSettings(_Section):
    slots: int = Field(default=64, ge=1, le=10_000)
    """Jobs that one worker handles at the same moment; waiting jobs need no slot."""
    per_provider: dict[str, int] = {}
    """Fewer slots for single providers, by name."""
    lease: Duration = 20.0
    """How long a job stays with a worker that no longer answers."""
    renew: Duration = Field(default=5.0, ge=0.05)
    """How often a worker renews its leases."""
    look: Duration = Field(default=2.0, ge=0.05)
    """How often an idle worker looks for jobs whose worker is gone."""
    linger: Duration = 30.0
    """How long a background worker stays when there is nothing left to do."""
    sweep: Duration = Field(default=300.0, ge=0.05)
    """How often the worker compares the providers' machines with the store."""
    settled: Duration = 3600.0
    """So long after a machine's end its provider's charges take the place of our estimate."""

    @model_validator(mode="after")
    def _renewed_in_time(self) -> WorkerSettings:
        if self.renew > self.lease / 2:
            raise ValueError("renew must be at most half of lease, or jobs are lost to other workers")
        return self


class StallSettings(_Section):
    enabled: bool = True
    """Whether trainings are watched for stalls."""
    terminate: bool = True
    """Whether a training that stays stalled past its grace period is ended; else there is only the alert."""
    thresholds: dict[str, Any] = {}
    """Further thresholds of the detector by name, as `stationmaster replay --set` takes them."""
    min_samples: int = Field(default=4, ge=3)
    """Steps that must have been seen before a pace is judged."""
    eta_convergence_threshold: float = Field(default=0.5, gt=0, le=1)
    """The time left must shrink by at least this share of the time that passes."""
    speed_drop_threshold: float = Field(default=0.5, gt=0, le=1)
    """A pace below this share of the usual one counts as a drop."""


class MonitoringSettings(_Section):
    """How a training is watched. A job may bring its own block; the seeds' millisecond names are read too."""

    poll_interval: Duration = 60.0
    """How often a training that nobody watches is asked."""
    watch_interval: Duration = 1.0
    """How often a training that somebody watches is asked."""
    grace_period: Duration = 900.0
    """Time between a stall's alert and the end of the training."""
    save_timeout: Duration = 180.0
    """A training that is to end may take so long to save first, or less by its recipe; 0: it is not asked."""
    silence_alert: Duration = 300.0
    """A machine that has not answered for so long raises an alert."""
    provisioning_alert: Duration = 600.0
    """A machine that is not there after so long raises an alert."""
    stall_detection: StallSettings = StallSettings()
    reactions: dict[str, str] = {}
    """What is done about an anomaly, by its name: note, alert or stop, as in {"nan_loss": "stop"}."""
    """How a stall is told from a slow training."""
    enabled: bool = True
    """Whether the trainer's memory and GPU are sampled beside it."""
    sample_interval_seconds: float = Field(default=5.0, gt=0)
    """How often they are sampled."""
    track_per_process: bool = True
    """Whether every process of the training is sampled, or only their sum."""
    analyze_on_complete: bool = True
    """Whether an ended training is analysed."""
    memory_warning_threshold: float = Field(default=0.85, gt=0, le=1)
    """The share of memory in use that raises a warning."""
    memory_critical_threshold: float = Field(default=0.95, gt=0, le=1)
    """The share of memory in use that is critical."""


class LimitSettings(_Section):
    ready: Duration = 900.0
    """A rented machine that cannot be logged in to after so long is given back."""
    transfer: Duration = 3600.0
    """Sending the dataset may take so long before the attempt is given up."""
    fetch: Duration = 3600.0
    """Bringing the results home is tried for at least so long, even past the job's own limit."""
    cleanup: Duration = Field(default=600.0, ge=0)
    """A recipe's cleanup may take so long before the machine is given back all the same."""
    min_hours: float = Field(default=4.0, gt=0)
    """The least time limit that a job gets by itself."""
    max_rentals: int = Field(default=2, ge=1)
    """How many machines may be rented at the same time."""
    daily_spend: Dollars = MicroDollars(0)
    """What one person's jobs may cost within a day; a further job waits in the queue. 0 sets no cap."""
    hourly_alert: Dollars = MicroDollars(10_000_000)
    """Operators are told when all machines together cost more than this in an hour; 0 never tells."""
    suspicion: Duration = 300.0
    """Machines that a provider's list lost together count as gone when two single reads, so far apart, say so."""


class TransferSettings(_Section):
    """How files travel to machines and back."""

    way: Literal["auto", "rsync", "sftp"] = "auto"
    """How big files travel: by rsync, by SFTP, or (auto) by rsync where both sides have it and it is worth it."""
    cache_gb: float = Field(default=20.0, ge=0)
    """Datasets stay on a machine for its next jobs, up to so many GB; 0 keeps none."""
    cache_age: Duration = 2592000.0
    """A dataset that no job used for so long is removed from a machine."""


class BillingSettings(_Section):
    """Prepaid credits for the users of an installation; see the how-to page on credits."""

    enabled: bool = False
    """Whether jobs are paid for with credits, which operators give out."""
    unit: Literal["dollars", "points"] = "dollars"
    """What credits are shown and entered in."""
    points_per_dollar: int = Field(default=10_000, ge=1, le=1_000_000)
    """How many points a dollar has; a divisor of 1,000,000, so that no fraction of a micro-dollar comes about."""
    returned_when_cancelled: float = Field(default=0.9, ge=0, le=1)
    """The largest share of its hold that comes back when a person cancels a job whose machine was in use."""

    @field_validator("points_per_dollar")
    @classmethod
    def _divides_evenly(cls, value: int) -> int:
        if 1_000_000 % value:
            raise ValueError("must be a divisor of 1,000,000, such as 100, 1000 or 10000")
        return value


class ArtifactSettings(_Section):
    every: Duration = 600.0
    """How often a new checkpoint of a running training is brought home; 0 brings models home at the end alone."""
    keep: int = Field(default=2, ge=1)
    """How many of them are kept at home: the best, the latest, and newer ones before older ones."""
    keep_local: bool = True
    """Whether results are also kept at home when they are safe elsewhere."""
    mirror: bool = False
    """Whether checkpoints of a running training go to the bucket as well, for workers on other hosts to go on from."""


class BucketSettings(_Section):
    """A bucket for datasets and models: Cloudflare R2, Amazon S3, or anything that speaks S3. Needs the extra `r2`."""

    name: str | None = Field(default=None, min_length=3, max_length=63)
    """The bucket; without one nothing is kept in a bucket."""
    endpoint: str | None = None
    """Where it answers, as https://ACCOUNT.r2.cloudflarestorage.com; by default Amazon's own address."""
    region: str = "auto"
    """Its region; `auto` for R2."""
    access_key: SecretStr | None = None
    """The key's id."""
    secret_key: SecretStr | None = None
    """The key's secret. It never leaves home."""
    prefix: str = Field(default="stationmaster", pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$")
    """What the names of our objects in the bucket begin with."""
    ticket: Duration = Field(default=900.0, ge=1, le=604800)
    """How long a machine may begin an upload with the address that it was given."""

    @model_validator(mode="after")
    def _whole(self) -> BucketSettings:
        if self.name is not None and (self.access_key is None or self.secret_key is None):
            raise ValueError("name needs access_key and secret_key")
        if self.access_key is not None and self.endpoint is None and self.region == "auto":
            raise ValueError("set endpoint to the service's address, or region to Amazon's region")
        return self


class HubSettings(_Section):
    """The Hugging Face Hub, which models are published to with `hf_token`."""

    publish: bool = False
    """Whether models go to the Hub, each to a repository of its own; needs hf_token with write access."""
    private: bool = True
    """Whether only the owner sees those repositories."""
    namespace: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$")
    """The user or organisation that they belong to; by default the token's own user."""
    url: str = Field(default="https://huggingface.co", pattern=r"^https?://[^\s?#]+$")
    """Where the Hub answers."""


class ComfyDeploySettings(_Section):
    """ComfyDeploy, where finished LoRAs are registered for making pictures."""

    api_key: SecretStr | None = None
    """Its key; without one nothing is registered."""
    base_url: str = Field(default="https://api.comfydeploy.com/api", pattern=r"^https?://[^\s?#]+$")
    """Where its API answers."""
    folder: str = Field(default="loras", pattern=r"^[A-Za-z0-9._/-]+$")
    """The folder of its volume that models are put in."""
    incomplete: bool = False
    """Whether models of trainings that ended early are registered too."""
    retry: Duration = Field(default=900.0, gt=0)
    """How long after a failure it is tried again."""


class ServeSettings(_Section):
    """The HTTP service: `stationmaster serve`."""

    host: str = "127.0.0.1"
    """Where it listens."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Its port; 0 takes a free one."""
    public_url: str | None = Field(default=None, pattern=r"^https?://[^\s?#]+$")
    """Where rented machines reach it; without one they are served by home alone, over SSH."""


class SweepSettings(_Section):
    """The safety net: what it does with machines that nobody works on."""

    every: Duration = 900.0
    """How often the stand-alone sweeper looks."""
    grace: Duration = 120.0
    """A machine that no rental names is destroyed so long after it was first seen."""
    stuck: Duration = 7200.0
    """A job without any progress for so long counts as stuck."""
    cap: Duration = 14400.0
    """How long a machine may run that no job's own limit covers."""
    abandon_after: Duration = 259200.0
    """A stopped machine whose model nobody fetched is destroyed after so long."""


class LoopbackSettings(_Section):
    price_per_hour: Dollars = MicroDollars(0)
    """What an hour on this computer is said to cost."""


class OwnHostSettings(_Section):
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


class SshSettings(_Section):
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


class BootstrapSettings(_Section):
    """What is done to a machine's system before its first training."""

    install_drivers: bool = False
    """Whether a missing Docker, podman or NVIDIA driver is installed on own machines where the login is root."""


class VastSettings(_Section):
    api_key: SecretStr | None = None
    """The account's key; needed as soon as Vast.ai is used."""
    ssh_key_path: Path | None = None
    """The private key whose public half Vast.ai knows."""
    api_base_url: str = "https://console.vast.ai/api/v0"
    """Where its API answers."""
    preferred_gpus: tuple[str, ...] = ("4090", "A100")
    """GPU models in the order they are wanted."""
    max_bid_per_hour: Dollars = MicroDollars(4_500_000)
    """The most that any rental may cost per hour, all told."""
    min_vram_gb: float = Field(default=24.0, gt=0)
    """The least memory of a GPU."""
    default_disk_gb: float = Field(default=64.0, gt=0)
    """The disk that is rented with a machine."""
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

    @field_validator("max_bid_per_hour")
    @classmethod
    def _above_zero(cls, value: MicroDollars) -> MicroDollars:
        if value <= 0:
            raise ValueError("must be above zero")
        return value


class MailSettings(_Section):
    """The mail server that e-mails go through."""

    host: str | None = None
    """Its name; without one no e-mail is sent."""
    port: int = Field(default=587, ge=1, le=65535)
    """Its port."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """How the way to it is protected."""
    sender: str = "stationmaster@localhost"
    """Whom the e-mails come from."""
    user: str | None = None
    """Who logs in there, if anybody has to."""
    password: SecretStr | None = None
    """Their password."""


class OperatorSettings(_Section):
    """Where operators are told what they should look at; every way that is set gets the message."""

    telegram_id: Identifier | None = None
    """A chat that the Telegram bot may write to."""
    discord_id: Identifier | None = None
    """A person whom the Discord bot may write to."""
    email: str | None = None
    """An address; needs notify.mail."""
    slack_url: SecretStr | None = None
    """An incoming webhook of Slack."""
    webhook_url: str | None = None
    """An address that gets signed JSON."""
    webhook_secret: SecretStr | None = None
    """What the webhook's messages are signed with; `whsec_` and base64, or any text."""
    apprise_urls: tuple[SecretStr, ...] = ()
    """Addresses of any service that Apprise knows; needs the extra `apprise`."""
    everything: bool = False
    """Whether operators also get what the users are told."""

    @model_validator(mode="after")
    def _signed(self) -> OperatorSettings:
        if self.webhook_url is not None and self.webhook_secret is None:
            raise ValueError("webhook_url needs webhook_secret, with which its messages are signed")
        return self


class NotifySettings(_Section):
    """How people are told. The ids here are those of the single user; others are added with `users add`."""

    telegram_bot_token: SecretStr | None = None
    """The Telegram bot that writes to people."""
    telegram_base_url: str = "https://api.telegram.org"
    """Where Telegram's bot API answers."""
    telegram_id: Identifier | None = None
    """Your chat with the bot."""
    discord_bot_token: SecretStr | None = None
    """The Discord bot that writes to people."""
    discord_base_url: str = "https://discord.com/api/v10"
    """Where Discord's API answers."""
    discord_id: Identifier | None = None
    """You, as Discord numbers you."""
    email: str | None = None
    """Your e-mail address, asked after Telegram and Discord; needs notify.mail."""
    quiet: QuietHours | None = None
    """Hours in which only what is urgent is sent, as 22:00-07:00; the rest follows afterwards."""
    time_zone: TimeZone = "UTC"
    """Where those hours are, as Europe/Berlin."""
    muted: tuple[str, ...] = ()
    """Kinds of messages that are not sent, only kept in the inbox."""
    page_url: str | None = None
    """Where people reach the web page; messages then carry a link to it."""
    low_credit: Dollars = MicroDollars(5_000_000)
    """Operators are told when a provider's credit falls below this."""
    look: Duration = Field(default=1.0, ge=0.05)
    """How often a worker looks for something to tell."""
    timeout: Duration = Field(default=10.0, gt=0)
    """How long a service may take to answer."""
    mail: MailSettings = MailSettings()
    operators: OperatorSettings = OperatorSettings()


LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class Settings(_Section):
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
    hf_token: SecretStr | None = None
    """Handed to trainings that declare HF_TOKEN."""
    secrets: dict[str, SecretStr] = {}
    """Further secrets that recipes may declare, by name; handed to the steps that name them."""
    log_cap_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    """How much of one job's log is kept at home."""
    worker: WorkerSettings = WorkerSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    limits: LimitSettings = LimitSettings()
    billing: BillingSettings = BillingSettings()
    transfer: TransferSettings = TransferSettings()
    artifacts: ArtifactSettings = ArtifactSettings()
    bucket: BucketSettings = BucketSettings()
    hub: HubSettings = HubSettings()
    comfydeploy: ComfyDeploySettings = ComfyDeploySettings()
    serve: ServeSettings = ServeSettings()
    sweep: SweepSettings = SweepSettings()
    loopback: LoopbackSettings = LoopbackSettings()
    ssh: SshSettings = SshSettings()
    bootstrap: BootstrapSettings = BootstrapSettings()
    vastai: VastSettings = VastSettings()
    notify: NotifySettings = NotifySettings()

    @model_validator(mode="after")
    def _may_publish(self) -> Settings:
        if self.hub.publish and self.hf_token is None:
            raise ValueError("hub.publish needs hf_token, a token of the Hub that may write")
        return self

    @field_validator("provider")
    @classmethod
    def _seed_alias(cls, value: str) -> str:
        return _PROVIDER_ALIASES.get(value, value)

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
