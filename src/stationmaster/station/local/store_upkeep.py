"""The store of this computer as a file or database: what is in it, whether it is whole, a copy of it.

Not part of the Station protocol: whoever keeps a server does this there.
"""

from __future__ import annotations

from pathlib import Path

from stationmaster.errors import NotFound, UserError
from stationmaster.settings import Settings
from stationmaster.store.backup import back_up
from stationmaster.store.inspection import StoreFacts as StoreFacts
from stationmaster.store.inspection import facts_of, kind_and_place, problems_of


class StoreUpkeep:
    def __init__(self, settings: Settings) -> None:
        """Opens nothing: a store that cannot be used is what these questions are about."""
        self._url = settings.store_url
        self._is_file = settings.uses_sqlite
        self.kind, self.place = kind_and_place(self._url)

    def facts(self) -> StoreFacts:
        """Raises NotFound if there is no store yet, StoreError, ConfigInvalid."""
        return facts_of(self._url)

    def problems(self) -> list[str]:
        """Raises NotFound if there is no store yet, StoreError, ConfigInvalid."""
        return problems_of(self._url)

    def back_up(self, target: Path, *, overwrite: bool) -> int:
        """Write a copy of a SQLite store, in use or not; its size in bytes. Raises NotFound, UserError, StoreError."""
        if not self._is_file:
            raise UserError(
                "the store is in PostgreSQL, which has its own backups",
                hint=f'pg_dump --format=custom --file={target} "$STATIONMASTER_DATABASE_URL"',
            )
        if not Path(self.place).exists():
            raise NotFound(f"there is no store at {self.place}", hint="there is nothing to back up yet")
        return back_up(Path(self.place), target, overwrite=overwrite)
