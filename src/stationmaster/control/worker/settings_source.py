"""A process's settings, reloaded when one of their files has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stationmaster.config import load_settings, settings_files
from stationmaster.errors import ConfigInvalid
from stationmaster.files import sha256_of
from stationmaster.settings import Settings

_SETTLE_SECONDS = 0.2
_MOST_LOOKS = 50  # at a file that keeps changing
_FIXED = ("home", "database_url")


class SettingsSource:
    """Settings from a process's environment, command line and files; only the files can change.

    Raises ConfigInvalid where the settings are invalid from the start.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        overrides: Mapping[str, Any] | None = None,
        folder: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.environ = environ
        self._sleep = sleep
        self._overrides = overrides
        self._folder = folder or Path.cwd()
        self.settings = self._loaded()
        self._files = self._named_files()
        self._seen = self._contents()

    def reread(self) -> bool:
        """Whether a file has changed; `settings` are then reloaded. Each change is reported once.

        Raises ConfigInvalid where they are invalid; `settings` then stay as they were.
        """
        if self._contents() == self._seen:
            return False
        settled = self._settled()
        self._files = self._named_files()  # a changed .env may name others
        self._seen = {path: settled[path] if path in settled else _digest(path) for path in self._files}
        fresh = self._loaded()
        for name in _FIXED:
            if getattr(fresh, name) != getattr(self.settings, name):
                raise ConfigInvalid(
                    f"{name} has changed, but a running process keeps the store that knows its machines",
                    hint="stop the process and start it again",
                )
        if fresh != self.settings:
            self.settings = fresh
        return True

    def _loaded(self) -> Settings:
        return load_settings(self.environ, overrides=self._overrides, folder=self._folder)

    def _named_files(self) -> list[Path]:
        return settings_files(self.environ, self.settings.home, folder=self._folder)

    def _settled(self) -> dict[Path, str | None]:
        """Digests of the files once they stop changing: half a file may be valid but wrong."""
        found = self._contents()
        for _ in range(_MOST_LOOKS):
            self._sleep(_SETTLE_SECONDS)
            before, found = found, self._contents()
            if found == before:
                break
        return found

    def _contents(self) -> dict[Path, str | None]:
        """A digest of each file; None where there is none. Cheap: it is called before every claim."""
        return {path: _digest(path) for path in self._files}


def files_changed_at(environ: Mapping[str, str], home: Path) -> float:
    """When a settings file was last written, renamed or replaced; 0 where there is none."""
    return max((_changed_at(path) for path in settings_files(environ, home)), default=0.0)


def _changed_at(path: Path) -> float:
    try:
        return path.expanduser().stat().st_ctime
    except (OSError, RuntimeError, ValueError):
        return 0.0


def _digest(path: Path) -> str | None:
    try:
        return sha256_of(path.expanduser())
    except (OSError, RuntimeError, ValueError):  # missing file, unknown ~user, a zero byte
        return None
