"""Settings of transfers, artifacts and the places that models are published to."""

from __future__ import annotations

from typing import Literal

from pydantic import (
    Field,
    model_validator,
)

from stationmaster.durations import Duration
from stationmaster.settings.addresses import BaseUrl, Token
from stationmaster.settings.section import Section


class TransferSettings(Section):
    """How files are uploaded to machines and downloaded from them."""

    way: Literal["auto", "rsync", "sftp"] = "auto"
    """How to transfer files: rsync, sftp, or auto (rsync for large transfers if both sides have it, else SFTP)."""
    archive_above_mb: float = Field(default=16.0, ge=0)
    """Size above which a dataset is sent as one archive, in MB; smaller ones, and all on this computer, go file by
    file."""
    cache_gb: float = Field(default=20.0, ge=0)
    """Size limit of the dataset cache on each machine, in GB; 0 caches nothing."""
    cache_age: Duration = 2592000.0
    """Datasets that no job used for this long are deleted, on machines and locally."""

    @property
    def archive_above_bytes(self) -> int:
        return int(self.archive_above_mb * 1e6)

    @property
    def cache_bytes(self) -> int:
        return int(self.cache_gb * 1e9)


DEFAULT_DOWNLOAD_CAP_BYTES = 500 * 2**30


class ArtifactSettings(Section):
    every: Duration = 600.0
    """Interval between downloads of checkpoints while a training runs; 0 downloads models only at the end."""
    samples_every: Duration = 60.0
    """Interval between downloads of samples and metrics files while a training runs; 0 downloads them at the end."""
    keep: int = Field(default=2, ge=1)
    """Number of downloaded checkpoints to keep locally: the best, the latest, then newer before older. After the
    training, as many are downloaded beside the model, unless `every` is 0."""
    cap_bytes: int = Field(default=DEFAULT_DOWNLOAD_CAP_BYTES, ge=1024)
    """Most bytes to download after a training, all its files together. A model that is larger stays on the machine,
    which is stopped, until you raise this; of the other files those that fit are downloaded."""
    keep_local: bool = True
    """Whether to keep results locally even if they are stored elsewhere."""
    mirror: bool = False
    """Whether to upload checkpoints of a running training to the bucket, so that workers on other hosts can resume."""


class BucketSettings(Section):
    """A bucket for datasets and models: Cloudflare R2, Amazon S3 or any S3-compatible service. Needs the extra `r2`."""

    name: str | None = Field(default=None, min_length=3, max_length=63)
    """Name of the bucket; empty uses no bucket."""
    endpoint: BaseUrl | None = None
    """URL of the bucket's service, e.g. https://ACCOUNT.r2.cloudflarestorage.com; empty means Amazon S3."""
    region: str = "auto"
    """Region of the bucket; `auto` for R2."""
    access_key: Token | None = None
    """Access key ID of the bucket."""
    secret_key: Token | None = None
    """Secret access key of the bucket. It is never sent to machines."""
    prefix: str = Field(default="stationmaster", pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$")
    """Prefix of all object names in the bucket."""

    @model_validator(mode="after")
    def _whole(self) -> BucketSettings:
        if self.name is not None and (self.access_key is None or self.secret_key is None):
            raise ValueError("name needs access_key and secret_key")
        if self.access_key is not None and self.endpoint is None and self.region == "auto":
            raise ValueError("set endpoint to the service's URL, or region to an Amazon region")
        return self


class HubSettings(Section):
    """The Hugging Face Hub, where models are published with `hf_token`."""

    publish: bool = False
    """Whether to publish models on the Hub, one repository each; needs hf_token with write access."""
    private: bool = True
    """Whether the repositories are private."""
    namespace: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$")
    """User or organisation that owns the repositories; empty means the token's user."""
    url: BaseUrl = "https://huggingface.co"
    """URL of the Hub."""


class ComfyDeploySettings(Section):
    """ComfyDeploy, where finished LoRAs are registered for generating images."""

    api_key: Token | None = None
    """API key of ComfyDeploy; empty registers nothing."""
    base_url: BaseUrl = "https://api.comfydeploy.com/api"
    """URL of ComfyDeploy's API."""
    folder: str = Field(default="loras", pattern=r"^[A-Za-z0-9._/-]+$")
    """Folder on ComfyDeploy's volume for the models."""
    incomplete: bool = False
    """Whether to register models of trainings that ended early, too."""
    retry: Duration = Field(default=900.0, gt=0)
    """Delay before a failed registration is retried."""

    @property
    def is_on(self) -> bool:
        return self.api_key is not None
