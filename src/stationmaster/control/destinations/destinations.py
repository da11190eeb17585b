"""Where models go besides home: the Hub, a bucket, and the service that makes pictures with them."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.destinations.job_bucket import BucketShelf, open_shelf
from stationmaster.delivery.comfydeploy import ComfyDeploy
from stationmaster.delivery.huggingface import HubClient
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import Settings
from stationmaster.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlets:
    """What is set; None where nothing is."""

    hub: HubClient | None = None
    shelf: BucketShelf | None = None
    comfydeploy: ComfyDeploy | None = None

    async def close(self) -> None:
        if self.hub is not None:
            await self.hub.close()
        if self.shelf is not None:
            self.shelf.close()


def open_outlets(settings: Settings, store: Store) -> Outlets:
    """The outlets of the settings. Raises ConfigInvalid."""
    return Outlets(
        hub=open_hub(settings) if settings.hub.publish else None,
        shelf=open_shelf(settings, store),
        comfydeploy=_comfydeploy(settings),
    )


def open_hub(settings: Settings) -> HubClient:
    """The settings' account of the Hub. Raises ConfigInvalid where there is no token."""
    if settings.hf_token is None:
        raise ConfigInvalid("publishing to the Hub needs a token", hint="set HF_TOKEN to one that may write")
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
