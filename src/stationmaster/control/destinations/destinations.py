"""Where models go besides this computer: the Hub, a bucket, ComfyDeploy."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.destinations.job_bucket import JobBucket, open_job_bucket
from stationmaster.delivery.comfydeploy import ComfyDeploy
from stationmaster.delivery.huggingface import HubClient
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import Settings
from stationmaster.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """The clients of the destinations; None for those that are not set."""

    hub: HubClient | None = None
    bucket: JobBucket | None = None
    comfydeploy: ComfyDeploy | None = None

    async def close(self) -> None:
        if self.hub is not None:
            await self.hub.close()
        if self.bucket is not None:
            self.bucket.close()


def open_destinations(settings: Settings, store: Store) -> Destinations:
    """Open the destinations in the settings. Raises ConfigInvalid."""
    return Destinations(
        hub=open_hub(settings) if settings.hub.publish else None,
        bucket=open_job_bucket(settings, store),
        comfydeploy=_comfydeploy(settings),
    )


def open_hub(settings: Settings) -> HubClient:
    """Open the Hub account in the settings. Raises ConfigInvalid without a token."""
    if settings.hf_token is None:
        raise ConfigInvalid("publishing to the Hub needs a token", hint="set HF_TOKEN to a token with write access")
    return HubClient(
        url=settings.hub.url,
        token=settings.hf_token.get_secret_value(),
        namespace=settings.hub.namespace,
        private=settings.hub.private,
    )


def _comfydeploy(settings: Settings) -> ComfyDeploy | None:
    wanted = settings.comfydeploy
    if wanted.api_key is None:
        return None
    return ComfyDeploy(base_url=wanted.base_url, api_key=wanted.api_key.get_secret_value(), folder=wanted.folder)
