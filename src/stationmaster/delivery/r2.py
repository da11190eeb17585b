"""The bucket that the settings name, or another one that the same key opens."""

from __future__ import annotations

from stationmaster.delivery.object_store import Bucket
from stationmaster.delivery.s3_client import new_client
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import BucketSettings


def open_bucket(settings: BucketSettings) -> Bucket | None:
    """The bucket for datasets and models; None where none is set. Raises ConfigInvalid."""
    if settings.name is None:
        return None
    return open_other_bucket(settings, settings.name, prefix=settings.prefix)


def open_other_bucket(settings: BucketSettings, name: str, *, prefix: str = "") -> Bucket:
    """Any bucket that the settings' key may read. Raises ConfigInvalid where there is no key."""
    if settings.access_key is None or settings.secret_key is None:
        raise ConfigInvalid(
            f"s3://{name} cannot be opened without a key",
            hint="set STATIONMASTER_BUCKET__ACCESS_KEY, STATIONMASTER_BUCKET__SECRET_KEY and, unless it is Amazon's, "
            "STATIONMASTER_BUCKET__ENDPOINT",
        )
    client = new_client(
        endpoint=settings.endpoint,
        region=settings.region,
        access_key=settings.access_key.get_secret_value(),
        secret_key=settings.secret_key.get_secret_value(),
    )
    return Bucket(client, name=name, prefix=prefix)
