"""Where files and models go, and who may fetch them."""

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
    """How files travel to machines and back."""

    way: Literal["auto", "rsync", "sftp"] = "auto"
    """How big files travel: by rsync, by SFTP, or (auto) by rsync where both sides have it and it is worth it."""
    cache_gb: float = Field(default=20.0, ge=0)
    """Datasets stay on a machine for its next jobs, up to so many GB; 0 keeps none."""
    cache_age: Duration = 2592000.0
    """A dataset that no job used for so long is removed from a machine, and from home."""


class ArtifactSettings(Section):
    every: Duration = 600.0
    """How often a new checkpoint of a running training is brought home; 0 brings models home at the end alone."""
    keep: int = Field(default=2, ge=1)
    """How many of them are kept at home: the best, the latest, and newer ones before older ones."""
    keep_local: bool = True
    """Whether results are also kept at home when they are safe elsewhere."""
    mirror: bool = False
    """Whether checkpoints of a running training go to the bucket as well, for workers on other hosts to go on from."""


class BucketSettings(Section):
    """A bucket for datasets and models: Cloudflare R2, Amazon S3, or anything that speaks S3. Needs the extra `r2`."""

    name: str | None = Field(default=None, min_length=3, max_length=63)
    """The bucket; without one nothing is kept in a bucket."""
    endpoint: BaseUrl | None = None
    """Where it answers, as https://ACCOUNT.r2.cloudflarestorage.com; by default Amazon's own address."""
    region: str = "auto"
    """Its region; `auto` for R2."""
    access_key: Token | None = None
    """The key's id."""
    secret_key: Token | None = None
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


class HubSettings(Section):
    """The Hugging Face Hub, which models are published to with `hf_token`."""

    publish: bool = False
    """Whether models go to the Hub, each to a repository of its own; needs hf_token with write access."""
    private: bool = True
    """Whether only the owner sees those repositories."""
    namespace: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$")
    """The user or organisation that they belong to; by default the token's own user."""
    url: BaseUrl = "https://huggingface.co"
    """Where the Hub answers."""


class ComfyDeploySettings(Section):
    """ComfyDeploy, where finished LoRAs are registered for making pictures."""

    api_key: Token | None = None
    """Its key; without one nothing is registered."""
    base_url: BaseUrl = "https://api.comfydeploy.com/api"
    """Where its API answers."""
    folder: str = Field(default="loras", pattern=r"^[A-Za-z0-9._/-]+$")
    """The folder of its volume that models are put in."""
    incomplete: bool = False
    """Whether models of trainings that ended early are registered too."""
    retry: Duration = Field(default=900.0, gt=0)
    """How long after a failure it is tried again."""


class ServeSettings(Section):
    """The HTTP service: `stationmaster serve`."""

    host: str = "127.0.0.1"
    """Where it listens."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Its port; 0 takes a free one."""
    public_url: BaseUrl | None = None
    """Where rented machines reach it; without one they are served by home alone, over SSH."""
