"""Names that this computer knows without opening its store or asking a server: for the completion of command lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import PROVIDERS, Settings
from stationmaster.store.names import jobs_in, models_in, users_in

_MOST = 1000
_DECIDING = ("STATIONMASTER_HOME", "STATIONMASTER_SERVER", "STATIONMASTER_DATABASE_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownJob:
    id: str
    name: str
    state: str
    ended: bool


class KnownNames:
    """Empty where commands ask a server or PostgreSQL: a press of TAB waits for no network."""

    def __init__(self, settings: Settings | None) -> None:
        self._settings = settings
        is_here = (
            settings is not None and settings.server is None and settings.uses_sqlite and settings.database_url is None
        )
        self._file = settings.home / "stationmaster.db" if settings is not None and is_here else None

    def jobs(self) -> list[KnownJob]:
        """Newest first."""
        if self._file is None:
            return []
        return [
            KnownJob(id=job_id, name=name, state=outcome or state, ended=outcome is not None)
            for job_id, name, state, outcome in jobs_in(self._file, limit=_MOST)
        ]

    def models(self) -> list[tuple[str, str]]:
        """Slug and name."""
        return [] if self._file is None else models_in(self._file, limit=_MOST)

    def users(self) -> list[str]:
        from stationmaster.model import SINGLE_USER  # slow to import; lines that want a user are rare

        return [] if self._file is None else [SINGLE_USER, *users_in(self._file, limit=_MOST)]

    def providers(self) -> Sequence[str]:
        return PROVIDERS

    def accounts(self) -> Sequence[str]:
        return [] if self._settings is None else sorted(self._settings.vastai.accounts)

    def recipe_folders(self) -> Sequence[Path]:
        return () if self._settings is None else self._settings.recipes


def known_names(environ: Mapping[str, str], *, home: Path | None = None, server: str | None = None) -> KnownNames:
    """The names of the home that the settings select; none if they are not valid."""
    try:
        overrides = {"home": home, "server": server}
        return KnownNames(load_settings(environ, overrides=overrides, warn=_ignore, run=_left_out))
    except ConfigInvalid:
        return KnownNames(None)


def _ignore(_warning: str) -> None:
    pass


def _left_out(variable: str, _command: str) -> None:
    """Run no command for a secret: it can take long, or ask for a password."""
    if variable in _DECIDING:
        raise ConfigInvalid(f"{variable} is not known without running its command")
