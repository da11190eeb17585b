"""What every noun of the local station uses: settings, store, providers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from stationmaster.settings import Settings

if TYPE_CHECKING:
    from stationmaster.model import FoundGpus
    from stationmaster.providers.base import Pause, Provider
    from stationmaster.store.store import Store


class Installation:
    """One installation on this computer. Its store is opened by the first call that needs it."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], *, pause: Pause = asyncio.sleep) -> None:
        """`pause` waits for a provider's rate limit; the CLI makes it visible."""
        self.settings = settings
        self.environ = environ
        self.pause = pause

    def with_settings(self, settings: Settings) -> Installation:
        """The same installation with other settings. Both have one store, which this one closes."""
        other = Installation(settings, self.environ, pause=self.pause)
        other.__dict__["store"] = self.store
        return other

    @cached_property
    def store(self) -> Store:
        from stationmaster.control.wiring.open_store import (
            open_store,  # loads SQLAlchemy, which recipes and datasets do not need
        )

        return open_store(self.settings)

    @cached_property
    def readable_store(self) -> Store:
        """The store for reading only: the home need not be writable."""
        from stationmaster.control.wiring.open_store import open_store

        return self.store if "store" in self.__dict__ else open_store(self.settings, writable=False)

    def provider(self, name: str | None, account: str | None = None) -> Provider:
        """The named provider, by default that of the settings, with one of its accounts. Raises ConfigInvalid."""
        from stationmaster.control.wiring.providers import (
            find_provider,  # loads every provider, which few questions need
        )

        wanted = name or self.settings.provider
        return find_provider(wanted, self.settings, self.environ, self.store, account=account, pause=self.pause)

    def local_gpus(self) -> FoundGpus:
        """The GPUs of this computer that jobs may use."""
        from stationmaster.control.wiring.providers import find_local_gpus

        return asyncio.run(find_local_gpus(self.settings, self.environ))

    def close(self) -> None:
        for opened in ("store", "readable_store"):
            if opened in self.__dict__:
                self.__dict__[opened].close()
