"""The machines of all accounts at Vast.ai, whoever rented them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from stationmaster.control.monitoring.sources import Sightings
from stationmaster.control.monitoring.vast_rows import sighting
from stationmaster.errors import ConfigInvalid
from stationmaster.providers.vastai.calls import INTERVALS, Calls
from stationmaster.providers.vastai.retries import Retries
from stationmaster.providers.vastai.telemetry import read_telemetry
from stationmaster.settings import Settings

if TYPE_CHECKING:
    from stationmaster.store.store import Store


def open_vast_listing(settings: Settings, open_store: Callable[[], Store], *, key_path: str | None) -> VastListing:
    """The clients of all accounts in the settings. One try per look, because the next look follows soon; only a rate
    limit is waited for, silently. Raises ConfigInvalid if there is no account."""
    keys = settings.vastai.keys_by_account()
    if not keys:
        raise ConfigInvalid(
            "Vast.ai needs a key and none is set",
            hint="set VASTAI_API_KEY (console.vast.ai, Account, API keys), or try --mock",
        )
    limiter = open_store().limiter
    calls = [
        Calls(
            base_url=settings.vastai.api_base_url,
            api_key=key,
            account=account,
            limiter=limiter,
            intervals={endpoint: seconds * settings.vastai.call_spacing for endpoint, seconds in INTERVALS.items()},
            retries=Retries(attempts=1),
        )
        for account, key in keys.items()
    ]
    return VastListing(*calls, key_path=key_path)


class VastListing:
    def __init__(self, *calls: Calls, key_path: str | None) -> None:
        self._calls = calls
        self._key_path = key_path

    async def machines(self) -> Sightings:
        """The machines of all accounts. Raises if one account does not answer, because unknown is not gone."""
        answers = await asyncio.gather(*(read_telemetry(calls) for calls in self._calls))
        return Sightings(
            machines=tuple(sighting(row, key_path=self._key_path) for answer in answers for row in answer.rows),
            unreadable=tuple(words for answer in answers for words in answer.unreadable),
        )

    async def close(self) -> None:
        """Every call has a connection of its own."""
